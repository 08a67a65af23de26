"""A host for zkbench verify -host, which gives it steps, one a line: see "Verification of a host" in
plugin/proto/PROTOCOL.md. When its plugin is killed, it resumes the session and the locks.

    zkbench verify -host python3 verify.py DIRECTORY

DIRECTORY is as for client.py, which it uses.
"""

import os
import subprocess
import sys
import threading
import time
import uuid

import grpc

# client.py reads its arguments when it is imported.
sys.argv[1:] = [os.environ["ZKRECIPES_VERIFY_PLUGIN"], sys.argv[1], os.environ["ZKRECIPES_VERIFY_SERVERS"], "/"]

from client import Service, Session, attach_to, launch, reasons, run
from zkrecipes.v1 import grant_pb2, session_pb2


class Refused(Exception):
    """The reasons for which a step has failed."""


class Host:
    def __init__(self, directory):
        self.directory = directory
        self.child = self.plugin = self.session = None
        self.held = {}  # by the name in the steps: the request id, the path and the grant
        self.gone = set()  # the request ids of grants that were lost
        self.changed = threading.Condition()
        self.generation = 0  # counts the plugins that have served the session
        self.lost = False  # no other plugin will serve it

    def launch(self):
        self.child, channel = launch(self.directory)
        return attach_to(channel), Service(channel, session_pb2, "SessionService"), Service(channel, grant_pb2, "GrantService")

    def use(self, session, launched):
        with self.changed:
            session.grant_lost, session.holds = self.gone.add, lambda: bool(self.held)
            self.session, ((self.plugin, self.attached), self.sessions, self.grants) = session, launched
            self.generation += 1
            self.changed.notify_all()

    def watch(self):
        """Resumes the session when its plugin was killed."""
        while self.session.lost.wait():
            try:
                self.resume()
            except Exception:  # whatever it is: the session is lost
                with self.changed:
                    self.lost = True
                    self.changed.notify_all()
                return

    def resume(self):
        if self.is_lost():
            raise RuntimeError(self.session.reason)
        try:
            status = self.child.wait(1)
        except subprocess.TimeoutExpired:
            raise RuntimeError("the plugin runs, and has ended the stream")
        if status >= 0:
            raise RuntimeError("the plugin has exited")
        launched = self.launch()
        _, sessions, grants = launched
        session, held = self.session.resume(sessions), list(self.held.values())
        for request, path, grant in held:
            try:
                grants.call("Acquire", lock={}, session=session.handle, request_id=request, path=path, resumed=grant)
            except grpc.RpcError as err:
                if "NOT_HELD" not in reasons(err):
                    raise
                self.gone.add(request)
        sessions.call("DropRest", session=session.handle)
        for request, _, _ in held:
            if request not in self.gone:
                grants.call("Watch", session=session.handle, request_id=request)
        self.use(session, launched)

    def is_lost(self):
        reported = self.session.lost.is_set() and not self.session.was_cut_off()
        return self.lost or reported or self.session.left() <= 0

    def await_plugin(self, after=0):
        """Waits until a plugin serves the session, and returns its number. after is that of one that was killed."""
        with self.changed:
            self.changed.wait_for(
                lambda: self.lost or self.generation > after and not self.session.lost.is_set(), max(0, self.session.left()))
            if self.is_lost():
                raise Refused("SESSION_LOST")
            return self.generation

    def repeat(self, f):
        """Calls f until it returns an answer. If a call was cut off, which is an error without ErrorInfo, the
        next plugin gets it."""
        after = 0
        while True:
            after = self.await_plugin(after)
            try:
                answer = f()
                if answer is not None:
                    return answer
            except grpc.RpcError as err:
                if reasons(err):
                    raise Refused(*reasons(err))
                if err.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise Refused("DEADLINE_EXCEEDED")

    # The steps.

    def open(self, milliseconds):
        launched = self.launch()
        self.use(Session(launched[1], timeout=int(milliseconds) / 1000), launched)
        threading.Thread(target=self.watch, daemon=True).start()

    def acquire(self, name, path, milliseconds=None, try_=False):
        request = str(uuid.uuid4())
        limit = int(milliseconds) / 1000 if milliseconds else None

        def ask():
            session, fields = self.session, dict(lock={}, session=self.session.handle, request_id=request, path=path, **{"try": try_})
            grant = self.grants.call("Acquire", timeout=limit, **fields).grant
            self.grants.call("Watch", session=session.handle, request_id=request)
            if session.confirm():
                self.held[name] = request, path, grant
                if not session.lost.is_set():  # otherwise resume may not have seen it
                    return grant
        try:
            return self.repeat(ask).token
        except Refused as refused:
            self.held.pop(name, None)
            if "DEADLINE_EXCEEDED" in refused.args:
                self.abandon(request)
            raise

    def try_(self, name, path):
        return self.acquire(name, path, try_=True)

    def abandon(self, request):
        """Abandons a request until the plugin answers. The grant may have been made."""
        while not self.is_lost():
            try:
                return self.grants.call("Abandon", session=self.session.handle, request_id=request)
            except grpc.RpcError as err:
                if reasons(err):
                    return
                time.sleep(0.1)

    def held_(self, name):
        if self.is_lost():
            raise Refused("SESSION_LOST")
        if name not in self.held or self.held[name][0] in self.gone:
            raise Refused("NOT_HELD")

    def write(self, name, path):
        self.held_(name)
        self.await_plugin()
        ops = [{"kind": grant_pb2.OP_KIND_CREATE, "path": path}]
        try:
            self.grants.call("Write", session=self.session.handle, request_id=self.held[name][0], ops=ops)
        except grpc.RpcError as err:
            raise Refused(*reasons(err) or ["UNKNOWN_OUTCOME"])

    def release(self, name):
        self.repeat(lambda: self.grants.call("Release", session=self.session.handle, request_id=self.held[name][0]))
        del self.held[name]

    def close(self):
        self.repeat(lambda: self.sessions.call("Close", session=self.session.handle))

    def end(self):
        """Ends the plugin, and kills it if it does not answer."""
        self.lost = True
        if not self.child:
            return
        try:
            if self.plugin:
                self.plugin.call("Shutdown", timeout=3)
                self.attached.cancel()
                self.child.wait(3)
        except (grpc.RpcError, subprocess.TimeoutExpired):
            pass
        self.child.kill()
        self.child.wait()


def main(directory):
    host = Host(directory)
    steps = {"open": host.open, "acquire": host.acquire, "try": host.try_, "held": host.held_,
             "write": host.write, "release": host.release, "close": host.close}
    for line in sys.stdin:
        verb, *arguments = line.split()
        try:
            if verb not in steps:
                raise Refused("UNSUPPORTED")
            result = steps[verb](*arguments)
            print("ok", "" if result is None else result, flush=True)
        except Refused as refused:
            print("error", ",".join(refused.args), flush=True)
        except Exception as err:
            print("error", "INTERNAL", " ".join(repr(err).split()), flush=True)
    host.end()


run(main)
