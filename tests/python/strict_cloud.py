"""A small cloud in a file, for the strict provider: machines, load balancers, routes, and commands that change machines.

It outlives the provider's process, kill -9 included. It knows neither gRPC nor the contract's messages.
"""

import ipaddress
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
        self.state = {"cluster": None, "made": 0, "machines": {}, "load_balancers": {}, "routes": []}
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

    def routes(self):
        """Copies of all routes, by destination."""
        with self.lock:
            return json.loads(json.dumps(sorted(self.state["routes"], key=lambda one: one["destination"])))

    def claim(self, cluster, text, target):
        """Makes a cluster's route lead to a target; answers `done`, `in_progress` or `not_owned`. The first call only begins."""
        with self.lock:
            here = [one for one in self.state["routes"] if one["destination"] == destination(text)]
            own = [one for one in here if one["cluster"] == cluster]
            others = [one for one in here if one["cluster"] != cluster]
            if any(one["target"] != target for one in others):
                return "not_owned"
            if others and not own:
                return "done"
            kept = next((one for one in own if one["target"] == target), None)
            if kept is None:
                kept = {"id": f"route-{self._next()}", "destination": destination(text), "cluster": cluster, "target": target, "state": "CREATING"}
                self.state["routes"].append(kept)
            else:
                kept["state"] = "ACTIVE"
                self.state["routes"] = [one for one in self.state["routes"] if one is kept or one not in own]
            self.save()
            return "done" if kept["state"] == "ACTIVE" else "in_progress"

    def release(self, cluster, text, target):
        """Removes a cluster's route that leads to a target; answers `done`, `conflict` or `not_owned`."""
        with self.lock:
            here = [one for one in self.state["routes"] if one["destination"] == destination(text)]
            own = [one for one in here if one["cluster"] == cluster]
            if own and all(one["target"] != target for one in own):
                return "conflict"
            if not own and any(one["target"] == target for one in here):
                return "not_owned"
            self.state["routes"] = [one for one in self.state["routes"] if one not in own or one["target"] != target]
            self.save()
            return "done"

    def add_routes(self, destinations):
        """Routes of a person, to a gateway."""
        for text in destinations:
            one = {"id": f"route-{self._next()}", "destination": destination(text), "cluster": "", "target": "vpn", "state": "ACTIVE"}
            self.state["routes"].append(one)

    def obey(self, command):
        """Carries out a command, `{"do": "stop", "names": ["node-1"]}`; answers what there is afterwards."""
        names = command.get("names", [])
        actions = {
            "add": self.add,
            "stop": lambda names: self.turn(names, "STOPPED"),
            "start": lambda names: self.turn(names, "RUNNING"),
            "terminate": lambda names: self.turn(names, "DELETED"),
            "forget": self.forget,
            "add-routes": self.add_routes,
            "show": lambda names: None,
        }
        with self.lock:
            actions[command["do"]](names)
            self.save()
            there = {"load_balancers": self.load_balancers(), "routes": self.routes()}
            return {"machines": len(self.state["machines"]), **there, "at": time.time()}

    def _next(self):
        self.state["made"] += 1
        return self.state["made"]


def destination(text):
    """A CIDR without host bits: how it is spelled makes no difference."""
    return str(ipaddress.ip_network(text, strict=False))
