"""A small cloud in a file, for the strict provider: machines, load balancers, and commands that change machines.

It outlives the provider's process, kill -9 included. It knows neither gRPC nor the contract's messages.
"""

import json
import os
import pathlib
import threading
import time


class Cloud:
    """Machines by name and load balancers by the UID of their service. Every change is in the file before it is answered."""

    def __init__(self, file):
        self.file = pathlib.Path(file)
        self.lock = threading.RLock()
        self.state = {"cluster": None, "made": 0, "machines": {}, "load_balancers": {}}
        if self.file.exists():
            self.state = json.loads(self.file.read_text())

    def save(self):
        """Replaces the file as a whole."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps(self.state, indent=1))
        os.replace(fresh, self.file)

    def cluster_uid(self):
        """The cluster that the cloud has seen, if any."""
        return self.state["cluster"]

    def meet(self, uid):
        """Keeps the UID of the first cluster that comes."""
        with self.lock:
            if self.state["cluster"] is None:
                self.state["cluster"] = uid
                self.save()

    def machine(self, name, provider_id):
        """The machine with this id, or of this name if no id is known; None if there is none."""
        with self.lock:
            machines = self.state["machines"].values()
            fits = [one for one in machines if (one["id"] == provider_id if provider_id else one["name"] == name)]
            return dict(fits[0]) if fits else None

    def add(self, names):
        """Machines start."""
        for name in names:
            number = self._next()
            address = f"10.0.{number // 256}.{number % 256}"
            self.state["machines"][name] = {"name": name, "id": f"i-{number:04}", "address": address, "state": "RUNNING"}

    def turn(self, names, state):
        """Machines change their power state: RUNNING, STOPPED or DELETED."""
        for name in names:
            self.state["machines"][name]["state"] = state

    def forget(self, names):
        """No record of these machines is left."""
        for name in names:
            del self.state["machines"][name]

    def load_balancer(self, uid):
        """A copy of the load balancer that is marked with this service, or None."""
        with self.lock:
            return json.loads(json.dumps(self.state["load_balancers"].get(uid)))

    def load_balancers(self):
        """Copies of all."""
        with self.lock:
            return json.loads(json.dumps(list(self.state["load_balancers"].values())))

    def provision(self, uid, wanted):
        """Makes the load balancer as wanted. The first call only begins to create it, the next one completes it."""
        with self.lock:
            known = self.state["load_balancers"].get(uid)
            if known is None:
                number = self._next()
                known = {"name": f"lb-{number}", "address": f"192.0.2.{number % 254 + 1}", "state": "CREATING", "changes": 0}
            else:
                known["state"] = "ACTIVE"
            if {**known, **wanted} != known:
                known = {**known, **wanted, "changes": known["changes"] + 1}
            self.state["load_balancers"][uid] = known
            self.save()
            return dict(known)

    def remove(self, uid):
        """Removes a load balancer; answers whether nothing of it is left. The first call only begins the removal."""
        with self.lock:
            known = self.state["load_balancers"].get(uid)
            if known is None:
                return True
            if known["state"] == "DELETING":
                del self.state["load_balancers"][uid]
            else:
                known["state"] = "DELETING"
            self.save()
            return uid not in self.state["load_balancers"]

    def obey(self, command):
        """Carries out a command, `{"do": "stop", "names": ["node-1"]}`; answers what there is afterwards."""
        names = command.get("names", [])
        actions = {
            "add": self.add,
            "stop": lambda names: self.turn(names, "STOPPED"),
            "start": lambda names: self.turn(names, "RUNNING"),
            "terminate": lambda names: self.turn(names, "DELETED"),
            "forget": self.forget,
            "show": lambda names: None,
        }
        with self.lock:
            actions[command["do"]](names)
            self.save()
            return {"machines": len(self.state["machines"]), "load_balancers": self.load_balancers(), "at": time.time()}

    def _next(self):
        self.state["made"] += 1
        return self.state["made"]
