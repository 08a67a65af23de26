"""A member of Shares without Go: see "Shares" in plugin/proto/PROTOCOL.md. It prints each COUNT
when it owns so many of the N numbers, and then waits for a line of input. In the end it leaves.

    python3 shares.py PLUGIN DIRECTORY HOST:PORT PATH N COUNT...

The rest is as for client.py, which it uses.
"""

import json
import sys
import threading
import uuid

import grpc

from client import PATH, Service, reason, run_with_session
from zkrecipes.v1 import configuration_pb2, grant_pb2, names_pb2

N, *COUNTS = (int(argument) for argument in sys.argv[5:])


class Member:
    def __init__(self, channel, session):
        self.session = session.handle
        self.configurations = Service(channel, configuration_pb2, "ConfigurationService")
        self.names, self.grants = Service(channel, names_pb2, "NamesService"), Service(channel, grant_pb2, "GrantService")
        self.changed = threading.Condition()
        self.wanted = {}  # by number, the thread that keeps it
        self.owned = set()
        self.lost = set()  # the ids of lost grants
        self.refused = False
        session.grant_lost = self.grant_lost
        self.id, self.grant = self.ask(path=PATH + "/members", group={"ends_with_host": True}, data=b"n=%d python" % N)

    def ask(self, **fields):
        """Asks for a grant, and returns its id and the grant. Its loss is reported."""
        request = str(uuid.uuid4())
        grant = self.grants.call("Acquire", session=self.session, request_id=request, **fields).grant
        self.grants.call("Watch", session=self.session, request_id=request)
        return request, grant

    def release(self, request):
        try:
            self.grants.call("Release", session=self.session, request_id=request)
        except grpc.RpcError as err:
            if reason(err) not in ("NOT_HELD", "REMOVED"):
                raise

    def grant_lost(self, request):
        with self.changed:
            self.lost.add(request)
            if request == self.id:
                self.wanted.clear()
            self.changed.notify_all()

    def follow(self):
        """Takes and gives up numbers as the assignment says."""
        named = False
        for answer in self.configurations.listen("WatchKey", session=self.session, path=PATH, key=""):
            try:
                assignment = json.loads(answer.entry.value)
            except ValueError:
                continue  # the assigner has not written yet
            numbers = assignment["members"].get(str(self.grant.token))
            named = named or numbers is not None
            with self.changed:
                if self.id in self.lost:
                    return
                name = self.grant.znode.rsplit("/", 1)[1]
                self.refused = self.grant.token in assignment.get("refused", []) or name in assignment.get("ignored", [])
                if named:  # otherwise it is older than this member
                    self.want(numbers or [])
                self.changed.notify_all()

    def want(self, numbers):
        self.wanted = {number: self.wanted.get(number) for number in numbers}
        for number, keeper in self.wanted.items():
            if keeper is None:
                self.wanted[number] = threading.Thread(target=self.keep, args=(number,), daemon=True)
                self.wanted[number].start()

    def is_wanted(self, number):
        """Reports whether the calling thread keeps the number."""
        return self.wanted.get(number) is threading.current_thread()

    def keep(self, number):
        """Takes a number when no member owns it, and owns it while it is wanted."""
        numbers, name = PATH + "/numbers", str(number)
        while True:
            with self.changed:
                if not self.is_wanted(number):
                    return
            try:
                request, grant = self.ask(path=numbers, names={"name": name}, data=b"python")
            except grpc.RpcError as err:
                if reason(err) != "NODE_EXISTS":
                    raise
                for answer in self.names.listen("WatchName", session=self.session, path=numbers, name=name):
                    if not answer.record.znode:
                        break
                continue
            with self.changed:
                self.owned.add(number)  # from now on a worker works for it, with grant.token
                self.changed.notify_all()
                self.changed.wait_for(lambda: request in self.lost or not self.is_wanted(number))
            self.release(request)  # when the worker has finished
            with self.changed:
                self.owned.remove(number)
                self.changed.notify_all()

    def owns(self, count):
        """Waits until it owns so many numbers, or is refused."""
        with self.changed:
            self.changed.wait_for(lambda: self.refused or len(self.owned) == count)
            print("refused" if self.refused else f"owns {count}", flush=True)

    def leave(self):
        self.grant_lost(self.id)  # as if it were lost
        self.release(self.id)
        if not self.refused:
            self.owns(0)


def work(channel, session):
    member = Member(channel, session)
    threading.Thread(target=member.follow, daemon=True).start()
    for count in COUNTS:
        member.owns(count)
        sys.stdin.readline()
    member.leave()


run_with_session(work)
