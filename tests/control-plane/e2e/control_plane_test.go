// End-to-end tests of the program: what the API server can do, and how the
// process starts and ends. Run them with the build's settings, so that nothing
// is compiled twice: CGO_ENABLED=0 GOFLAGS=-trimpath go test -count=1 ./...

package e2e

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestTwoInstancesServeSideBySide(t *testing.T) {
	t.Parallel()
	first := launch(t, t.TempDir())
	second := launch(t, t.TempDir(), "--exit-with-parent", "--", "--disable-admission-plugins=ServiceAccount")
	first.awaitReady(t)
	second.awaitReady(t)

	t.Run("readyz answers ok", func(t *testing.T) { checkReadyz(t, first) })
	t.Run("the kubeconfig verifies this server and no other", func(t *testing.T) { checkVerification(t, first, second) })
	t.Run("a node takes status patches", func(t *testing.T) { checkNode(t, first) })
	t.Run("a load balancer service is dual-stack", func(t *testing.T) { checkService(t, first) })
	t.Run("a token is bound by RBAC", func(t *testing.T) { checkToken(t, first) })
	t.Run("the other one has its own objects and flags", func(t *testing.T) { checkOwnObjects(t, second) })
	t.Run("SIGTERM ends it despite an open watch", func(t *testing.T) {
		watch, err := first.client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
		must(t, err)
		defer watch.Stop()
		first.terminate(t)
	})
	t.Run("the end of stdin ends it", func(t *testing.T) {
		must(t, second.stdin.Close())
		second.awaitEnd(t)
	})
}

func checkReadyz(t *testing.T, i *instance) {
	body, err := i.client.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
	must(t, err)
	if string(body) != "ok" {
		t.Errorf("/readyz: %s", body)
	}
	if i.APIServerPID != i.command.Process.Pid {
		t.Errorf("apiserver_pid is %d, the process %d", i.APIServerPID, i.command.Process.Pid)
	}
}

func checkVerification(t *testing.T, i, other *instance) {
	if i.admin.Insecure || len(i.admin.CAData) == 0 {
		t.Errorf("the kubeconfig does not verify the server: %+v", i.admin.TLSClientConfig)
	}
	stranger := rest.CopyConfig(i.admin)
	stranger.CAData = other.admin.CAData
	client, err := kubernetes.NewForConfig(stranger)
	must(t, err)
	var unknown x509.UnknownAuthorityError
	if _, err := client.ServerVersion(); !errors.As(err, &unknown) {
		t.Errorf("with another server's CA: %v", err)
	}
}

func checkNode(t *testing.T, i *instance) {
	nodes := i.client.CoreV1().Nodes()
	created, err := nodes.Create(t.Context(), node("node-1"), metav1.CreateOptions{})
	must(t, err)
	if len(created.Spec.Taints) > 0 {
		t.Errorf("a new node has taints that no controller lifts here: %v", created.Spec.Taints)
	}
	merge := `{"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.1"}]}}`
	_, err = nodes.Patch(t.Context(), "node-1", types.StrategicMergePatchType, []byte(merge), metav1.PatchOptions{}, "status")
	must(t, err)
	add := `[{"op":"add","path":"/status/addresses/-","value":{"type":"Hostname","address":"node-1"}}]`
	patched, err := nodes.Patch(t.Context(), "node-1", types.JSONPatchType, []byte(add), metav1.PatchOptions{}, "status")
	must(t, err)
	if len(patched.Status.Addresses) != 2 {
		t.Errorf("addresses after two patches: %v", patched.Status.Addresses)
	}
}

func checkService(t *testing.T, i *instance) {
	dual := corev1.IPFamilyPolicyRequireDualStack
	services := i.client.CoreV1().Services("default")
	service, err := services.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{
			Type:           corev1.ServiceTypeLoadBalancer,
			IPFamilyPolicy: &dual,
			Ports:          []corev1.ServicePort{{Port: 80}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	if len(service.Spec.ClusterIPs) != 2 || service.Spec.Ports[0].NodePort == 0 {
		t.Errorf("cluster IPs %v, ports %v", service.Spec.ClusterIPs, service.Spec.Ports)
	}
	status := `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.10"}]}}}`
	_, err = services.Patch(t.Context(), "web", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	must(t, err)
}

func checkToken(t *testing.T, i *instance) {
	accounts := i.client.CoreV1().ServiceAccounts("kube-system")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "tester"}}
	_, err := accounts.Create(t.Context(), account, metav1.CreateOptions{})
	must(t, err)
	request, err := accounts.CreateToken(t.Context(), "tester", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)

	tester := i.as(t, request.Status.Token)
	_, err = tester.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:kube-system:tester") {
		t.Fatalf("listing nodes without a role: %v", err)
	}
	allowListingNodes(t, i)
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := tester.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil // the authorizer has not seen the binding yet
		}
		return err == nil, err
	})
	if err != nil {
		t.Errorf("listing nodes with a role: %v", err)
	}
}

// allowListingNodes gives the ServiceAccount of checkToken a role.
func allowListingNodes(t *testing.T, i *instance) {
	t.Helper()
	name := metav1.ObjectMeta{Name: "list-nodes"}
	_, err := i.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: name,
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = i.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "list-nodes"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: "tester"}},
	}, metav1.CreateOptions{})
	must(t, err)
}

func checkOwnObjects(t *testing.T, i *instance) {
	nodes := i.client.CoreV1().Nodes()
	if _, err := nodes.Get(t.Context(), "node-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("sees a node of the other instance: %v", err)
	}
	created, err := nodes.Create(t.Context(), node("node-2"), metav1.CreateOptions{})
	must(t, err)
	if len(created.Spec.Taints) != 1 {
		t.Errorf("the flag after \"--\" did not replace the default: taints %v", created.Spec.Taints)
	}
}

func TestASecondRunContinuesTheFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, dir)
	_, err := first.client.CoreV1().Nodes().Create(t.Context(), node("kept"), metav1.CreateOptions{})
	must(t, err)

	intruder := launch(t, dir)
	if err := intruder.command.Wait(); err == nil || !strings.Contains(intruder.stderr.String(), "in use") {
		t.Errorf("a second process in the same directory: %v, %s", err, intruder.stderr)
	}
	first.terminate(t)

	second := start(t, dir, "--port", portOf(t, first.Server))
	// The first run's client, with its address, CA and token.
	_, err = first.client.CoreV1().Nodes().Get(t.Context(), "kept", metav1.GetOptions{})
	must(t, err)
	second.terminate(t)
}

func TestAFailedStartShowsTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	i := launch(t, dir, "--", "--authorization-mode=Nonsense")
	if rest := awaitEOF(t, i.stdout); rest != "" {
		t.Errorf("printed %q", rest)
	}
	err := i.command.Wait()
	if err == nil || !strings.Contains(i.stderr.String(), "Nonsense") {
		t.Errorf("exit: %v, stderr: %s", err, i.stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "kubeconfig")); !os.IsNotExist(err) {
		t.Errorf("left a kubeconfig: %v", err)
	}
}

func TestTheDeathOfTheParentEndsIt(t *testing.T) {
	t.Parallel()
	path, err := binary()
	must(t, err)
	// The shell is the parent. The program's stdin is a pipe that stays open.
	parent := exec.Command("sh", "-c", `"$0" "$@" <&3 & wait`, path, "--dir", t.TempDir(), "--exit-with-parent")
	kept, open, err := os.Pipe()
	must(t, err)
	defer open.Close()
	parent.ExtraFiles = []*os.File{kept}
	stdout, err := parent.StdoutPipe()
	must(t, err)
	must(t, parent.Start())
	must(t, kept.Close())
	reader := bufio.NewReader(stdout)
	readLine(t, reader, func() string { return "see its log" })

	must(t, parent.Process.Kill())
	awaitEOF(t, reader)
	_ = parent.Wait()
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
