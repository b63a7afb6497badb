// Credentials: the serving certificate and its CA, the ServiceAccount signing
// key and the admin's token. Made once per directory and reused by later runs.

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// validity of the certificates; the start is set back against clocks that
// were adjusted.
const (
	validFor   = 10 * 365 * 24 * time.Hour
	validSince = time.Hour
)

// credentials are what the API server is given as files and what the
// kubeconfig needs as values.
type credentials struct {
	caFile, certFile, keyFile, signingKeyFile, tokenFile string

	caPEM      []byte
	adminToken string
}

// loadOrCreateCredentials works in the current directory. The token file is
// written last: its presence says that the set is complete.
func loadOrCreateCredentials() (*credentials, error) {
	c := &credentials{
		caFile:         absolute(filepath.Join(pkiName, "ca.crt")),
		certFile:       absolute(filepath.Join(pkiName, "apiserver.crt")),
		keyFile:        absolute(filepath.Join(pkiName, "apiserver.key")),
		signingKeyFile: absolute(filepath.Join(pkiName, "service-account.key")),
		tokenFile:      absolute(filepath.Join(pkiName, "tokens.csv")),
	}
	if _, err := os.Stat(c.tokenFile); errors.Is(err, fs.ErrNotExist) {
		if err := c.create(); err != nil {
			return nil, fmt.Errorf("cannot make the credentials: %w", err)
		}
	}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("cannot read the credentials: %w", err)
	}
	return c, nil
}

func (c *credentials) load() (err error) {
	if c.caPEM, err = os.ReadFile(c.caFile); err != nil {
		return err
	}
	line, err := os.ReadFile(c.tokenFile)
	if err != nil {
		return err
	}
	c.adminToken, _, _ = strings.Cut(string(line), ",")
	return nil
}

func (c *credentials) create() error {
	if err := os.MkdirAll(pkiName, 0o700); err != nil {
		return err
	}
	if err := c.createServingCertificate(); err != nil {
		return err
	}
	signingKey, err := newKey()
	if err != nil {
		return err
	}
	if err := writeKey(c.signingKeyFile, signingKey); err != nil {
		return err
	}
	line := rand.Text() + `,admin,admin,"system:masters"` + "\n"
	return writeAtomically(c.tokenFile, []byte(line))
}

// createServingCertificate signs with a CA whose key is then forgotten, so
// that trusting the CA means trusting this one certificate.
func (c *credentials) createServingCertificate() error {
	caKey, err := newKey()
	if err != nil {
		return err
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	ca := template("control-plane-ca", 1)
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	if err := writeCertificate(c.caFile, ca, ca, caKey, caKey); err != nil {
		return err
	}
	leaf := template("kube-apiserver", 2)
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	leaf.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	if err := writeCertificate(c.certFile, leaf, ca, key, caKey); err != nil {
		return err
	}
	return writeKey(c.keyFile, key)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func template(name string, serial int64) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-validSince),
		NotAfter:     time.Now().Add(validFor),
	}
}

// writeCertificate writes certificate for key, signed by issuer's issuerKey.
func writeCertificate(name string, certificate, issuer *x509.Certificate, key, issuerKey *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, certificate, issuer, key.Public(), issuerKey)
	if err != nil {
		return err
	}
	return writePEM(name, "CERTIFICATE", der)
}

func writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(name, "EC PRIVATE KEY", der)
}

func writePEM(name, kind string, der []byte) error {
	return writeAtomically(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// absolute is filepath.Abs for a process that knows its directory.
func absolute(name string) string {
	path, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	return path
}
