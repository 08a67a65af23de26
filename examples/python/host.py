"""A zkrecipes host in one file, to be copied. "python3 host.py PLUGIN HOST:PORT PATH" runs main: a lock, a
guarded write, an election and a queue. README.md generates the modules that are imported here. What looks
superfluous answers a race or a failure that plugin/proto/PROTOCOL.md describes.
"""

import contextlib
import queue
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import uuid

import error_pb2
import grpc
from zkrecipes.v1 import config_pb2, grant_pb2, plugin_pb2, queue_pb2, session_pb2
from zkrecipes.v1 import grant_pb2_grpc, plugin_pb2_grpc, queue_pb2_grpc, session_pb2_grpc

TIMEOUT = 20  # seconds for a call that does not wait for other clients


def reasons(err):
    """Returns the reasons of a grpc.RpcError, the most specific first. Without any, the outcome is unknown."""
    status = dict(err.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    for detail in error_pb2.Status.FromString(status).details:
        info = error_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == "zkrecipes":
            return info.metadata["reasons"].split(",")
    return []


class Plugin:
    """A plugin process, for any number of sessions. It ends when this process does, however that ends."""

    def __init__(self, executable):
        self.directory = tempfile.TemporaryDirectory(prefix="zk-")  # of mode 0700, for the socket
        openssl = "openssl req -x509 -newkey rsa:2048 -nodes -keyout - -out - -days 1 -subj /CN=localhost"
        made = subprocess.run(openssl.split(), check=True, capture_output=True).stdout
        key, begin, rest = made.partition(b"-----BEGIN CERTIFICATE-----")
        self.child = subprocess.Popen([executable], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env={
            "ZKRECIPES_PLUGIN": "5b1c9f0e-recipes-of-zookeeper", "ZKRECIPES_PLUGIN_LOG_LEVEL": "warn",
            "PLUGIN_PROTOCOL_VERSIONS": "1", "PLUGIN_CLIENT_CERT": (begin + rest).decode(),
            "PLUGIN_UNIX_SOCKET_DIR": self.directory.name})
        handshake = self.child.stdout.readline().strip().split("|")
        if handshake[:3] != ["1", "1", "unix"]:
            raise RuntimeError(f"the plugin prints {handshake}")  # it exits when no host attaches
        # The plugin's certificate is its own anchor. Its name is localhost, whatever the address is.
        lines = textwrap.fill(handshake[5] + "=" * (-len(handshake[5]) % 4), 64)
        anchor = f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n".encode()
        self.channel = grpc.secure_channel(
            "unix:" + handshake[3], grpc.ssl_channel_credentials(anchor, key, begin + rest),
            [("grpc.ssl_target_name_override", "localhost"), ("grpc.max_receive_message_length", -1)])
        self.control = plugin_pb2_grpc.PluginServiceStub(self.channel)
        self.attached = self.control.Attach(plugin_pb2.AttachRequest())  # the plugin lives while this is open
        next(self.attached)

    def close(self, timeout=TIMEOUT):
        """Closes all sessions in ZooKeeper and ends the plugin."""
        try:
            self.control.Shutdown(plugin_pb2.ShutdownRequest(), timeout=timeout)
            self.attached.cancel()
            self.child.wait(timeout)
        finally:
            self.child.kill()
            self.child.wait()


class Session:
    """A ZooKeeper session. Once it is lost it stays lost, with all its holds: open another one."""

    def __init__(self, plugin, start):
        self.grants = grant_pb2_grpc.GrantServiceStub(plugin.channel)
        self.holds, self.lost, self.reason = {}, threading.Event(), ""  # holds by request id
        self.sent, self.number = {}, 0  # when each Beat was sent; the number of the last one
        self.changed = threading.Condition()  # guards sent and number
        self.outgoing = queue.Queue()
        self.outgoing.put(session_pb2.OpenRequest(start=start))
        self.incoming = session_pb2_grpc.SessionServiceStub(plugin.channel).Open(iter(self.outgoing.get, None))
        self.opened = next(self.incoming).opened
        self.name, self.timeout = self.opened.session, self.opened.timeout.ToTimedelta().total_seconds()
        self.contact = self.known = time.monotonic()  # the last contact, and the last that the leader received
        threading.Thread(target=self.take, daemon=True).start()
        threading.Thread(target=self.beat, daemon=True).start()

    def left(self):
        """Returns for how many seconds no other client can hold what this session holds. 0: it is lost."""
        contact = self.known if self.holds else self.contact
        return 0 if self.lost.is_set() else max(0, contact + self.timeout - time.monotonic())

    def beat(self):
        while self.left():
            self.send_beat()
            self.lost.wait(min(self.timeout / 5, self.left()))
        self.lose("the plugin does not answer")

    def send_beat(self):
        with self.changed:
            self.number += 1
            self.sent[self.number] = time.monotonic()
            self.outgoing.put(session_pb2.OpenRequest(beat=session_pb2.Beat(number=self.number)))
            return self.number

    def take(self):
        with contextlib.suppress(grpc.RpcError):
            for message in self.incoming:
                if message.HasField("beat_echo"):
                    self.take_echo(message.beat_echo)
                elif hold := self.holds.pop(message.grant_lost.request_id, None):
                    hold.lost.set()
                elif message.state_changed.state == session_pb2.STATE_LOST:
                    self.lose(next(iter(message.state_changed.reason.reasons), "SESSION_LOST"))
        self.lose(self.incoming.code().name)

    def take_echo(self, echo):
        with self.changed:
            sent = self.sent[echo.number]  # the age of a contact counts from here
            self.sent = {number: at for number, at in self.sent.items() if number > echo.number}
            if echo.HasField("timeout"):
                self.timeout = echo.timeout.ToTimedelta().total_seconds()
            known = echo.known_contact_age if echo.HasField("known_contact_age") else echo.contact_age
            self.contact = sent - echo.contact_age.ToTimedelta().total_seconds()
            self.known = sent - known.ToTimedelta().total_seconds()
            self.changed.notify_all()

    def lose(self, reason):
        with self.changed:
            self.reason = self.reason or reason
            self.lost.set()
            self.changed.notify_all()
        for hold in list(self.holds.values()):
            hold.lost.set()


class Hold:
    """A lock, a leadership, a delivery or another grant. lost is set when it is lost: then end the work."""

    def __init__(self, session, path, timeout=None, **fields):
        """Waits for the grant. fields are those of AcquireRequest, such as lock={}, election={} or queue={}."""
        self.session, self.request, self.lost = session, str(uuid.uuid4()), threading.Event()
        try:
            self.acquire(timeout, path=path, **fields)
        except BaseException:  # the plugin may have granted what the host gives up: it must get to know that
            session.holds.pop(self.request, None)
            while self.session.left():
                with contextlib.suppress(grpc.RpcError):
                    self.call("Abandon")
                    break
                self.session.lost.wait(0.1)
            raise

    def acquire(self, timeout, **fields):
        self.answer, session = self.call("Acquire", timeout, **fields), self.session
        number = session.send_beat()  # the last echo may be from before the contact that the grant rests on
        with session.changed:
            session.changed.wait_for(lambda: number not in session.sent or session.lost.is_set(), TIMEOUT)
        session.holds[self.request] = self
        self.call("Watch")
        if not self.is_held():
            raise RuntimeError("the grant is lost")

    def call(self, method, timeout=TIMEOUT, **fields):
        request = getattr(grant_pb2, method + "Request")(session=self.session.name, request_id=self.request, **fields)
        return getattr(self.session.grants, method)(request, timeout=timeout)

    def is_held(self):
        return not self.lost.is_set() and self.session.left() > 0

    def release(self):
        self.call("Release")
        self.session.holds.pop(self.request, None)

    def acknowledge(self, queues):
        request = queue_pb2.AcknowledgeElementRequest(session=self.session.name, request_id=self.request)
        queues.AcknowledgeElement(request, timeout=TIMEOUT)
        self.session.holds.pop(self.request, None)


def main(executable, server, path):
    with contextlib.closing(Plugin(executable)) as plugin:
        session = Session(plugin, session_pb2.Start(config=config_pb2.Config(servers=[server])))
        lock = Hold(session, path + "/lock", timeout=60, lock={})  # seconds
        # ZooKeeper refuses this write if the lock is lost. Give other stores the token.
        lock.call("Write", ops=[grant_pb2.Op(kind=grant_pb2.OP_KIND_SET, path=path, data=b"mine", version=-1)])
        print("written under the lock", lock.answer.grant.token)
        lock.release()
        leadership = Hold(session, path + "/leader", election={}, data=b"python")  # data is for those who observe
        print("leads" if leadership.is_held() else "lost")  # a leader works until leadership.lost is set
        leadership.release()
        queues = queue_pb2_grpc.QueueServiceStub(plugin.channel)
        queues.PutElements(queue_pb2.PutElementsRequest(
            session=session.name, path=path + "/queue", queue={}, data=[b"work"]), timeout=TIMEOUT)
        delivery = Hold(session, path + "/queue", queue={})
        print("received", delivery.answer.delivery.element.data.decode())
        delivery.acknowledge(queues)  # deletes it; release would return it to the queue


if __name__ == "__main__":
    main(*sys.argv[1:])
