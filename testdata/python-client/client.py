"""A zkrecipes host without Go. It launches the plugin with mutual TLS, as
hashicorp/go-plugin does, opens a session, takes a lock, prints its fencing token, and meets
some errors. It kills the plugin, and resumes the session in another one. It ends that one.
See plugin/proto/PROTOCOL.md.

    protoc -I plugin/proto -I testdata/python-client --python_out=DIRECTORY \
        plugin/proto/zkrecipes/v1/*.proto testdata/python-client/error.proto
    python3 client.py PLUGIN DIRECTORY HOST:PORT PATH

It needs Debian's python3-grpcio and python3-protobuf, and openssl for its certificate.
"""

import base64
import queue
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import grpc

PLUGIN, GENERATED, SERVER, PATH = sys.argv[1:5]
sys.path.insert(0, GENERATED)

import error_pb2
from zkrecipes.v1 import contender_pb2, grant_pb2, plugin_pb2, session_pb2

TIMEOUT = 20  # seconds for each call


def make_certificate(directory):
    """Returns the host's certificate and key, made for this launch, in PEM."""
    key, certificate = directory + "/key.pem", directory + "/certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", certificate, "-days", "1", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-addext", "extendedKeyUsage=clientAuth,serverAuth"],
        check=True, stderr=subprocess.DEVNULL)
    with open(certificate, "rb") as c, open(key, "rb") as k:
        return c.read(), k.read()


def der_to_pem(der):
    text = base64.b64encode(der).decode()
    lines = [text[i:i + 64] for i in range(0, len(text), 64)]
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]).encode()


def launch(directory):
    """1. The handshake. The plugin prints one line:
    core version | protocol version | network | address | "grpc" | certificate."""
    certificate, key = make_certificate(directory)
    child = subprocess.Popen([PLUGIN], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env={
        "ZKRECIPES_PLUGIN": "5b1c9f0e-recipes-of-zookeeper",
        "ZKRECIPES_PLUGIN_LOG_LEVEL": "warn",
        "PLUGIN_PROTOCOL_VERSIONS": "1",
        "PLUGIN_UNIX_SOCKET_DIR": directory,
        "PLUGIN_CLIENT_CERT": certificate.decode(),
    })
    line = child.stdout.readline().strip()
    core, protocol, network, address, kind, theirs = line.split("|")[:6]
    if (core, protocol, kind) != ("1", "1", "grpc"):
        child.kill()
        raise RuntimeError(f"unexpected handshake: {line}")
    # The base64 has no padding. The certificate is its own anchor, and its name is
    # localhost, whatever the address is.
    if "=" in theirs:
        raise RuntimeError("the certificate has padding")
    theirs = der_to_pem(base64.b64decode(theirs + "=" * (-len(theirs) % 4)))
    credentials = grpc.ssl_channel_credentials(root_certificates=theirs, private_key=key, certificate_chain=certificate)
    target = "unix:" + address if network == "unix" else address
    return child, grpc.secure_channel(target, credentials, options=[("grpc.ssl_target_name_override", "localhost")])


class Service:
    """A service's calls, from the messages alone: no generated stubs are needed."""

    def __init__(self, channel, module, name):
        self.channel, self.module, self.name = channel, module, "/zkrecipes.v1." + name + "/"

    def messages(self, method):
        return getattr(self.module, method + "Request"), getattr(self.module, method + "Response")

    def call(self, method, timeout=TIMEOUT, **fields):
        request, response = self.messages(method)
        rpc = self.channel.unary_unary(self.name + method, request.SerializeToString, response.FromString)
        return rpc(request(**fields), timeout=timeout)

    def stream(self, method, requests):
        request, response = self.messages(method)
        rpc = self.channel.stream_stream(self.name + method, request.SerializeToString, response.FromString)
        return rpc(requests)

    def listen(self, method, **fields):
        request, response = self.messages(method)
        rpc = self.channel.unary_stream(self.name + method, request.SerializeToString, response.FromString)
        return rpc(request(**fields))


class Session:
    """3. The session's stream is the lease on it."""

    def __init__(self, service, resume=None, contact=None, timeout=None):
        config = {"servers": [SERVER]}
        if timeout:
            config["session_timeout"] = {"seconds": int(timeout), "nanos": int(timeout % 1 * 1e9)}
        self.outgoing = queue.Queue()
        self.send(start=session_pb2.Start(config=config, resume=resume))
        self.incoming = service.stream("Open", iter(self.outgoing.get, None))
        opened = next(self.incoming).opened
        self.handle, self.timeout, self.ticket = opened.session, opened.timeout.ToTimedelta().total_seconds(), opened.ticket
        if resume:  # the deadline does not move until the next echo
            self.timeout = min(self.timeout, timeout)
        self.lost = threading.Event()
        self.reason = ""
        self.grant_lost = lambda request: None
        self.holds = lambda: True  # whether the session holds something
        self.sent = {}  # when each Beat was sent
        self.number = 0  # of the last Beat
        self.echoed = threading.Condition()
        self.contact = self.known = contact or time.monotonic()  # known: the last that the leader is known to have heard
        threading.Thread(target=self.beat, daemon=True).start()
        self.taker = threading.Thread(target=self.take, daemon=True)
        self.taker.start()

    def send(self, **message):
        self.outgoing.put(session_pb2.OpenRequest(**message))

    def left(self):
        """Returns the time until the deadline, in seconds."""
        return (self.known if self.holds() else self.contact) + self.timeout - time.monotonic()

    def beat(self):
        """A Beat every fifth of the session timeout. Without it, the plugin closes the session."""
        while True:
            self.send_beat()
            if self.lost.wait(max(0, min(self.timeout / 5, self.left()))):
                return
            if self.left() <= 0:
                self.lose("the plugin does not answer")

    def send_beat(self):
        with self.echoed:
            self.number += 1
            self.sent[self.number] = time.monotonic()
            self.send(beat=session_pb2.Beat(number=self.number))
            return self.number

    def confirm(self):
        """Waits for the echo of another Beat, and reports whether it has come. While the session held
        nothing, the known contact may have become too old for a grant."""
        number = self.send_beat()
        with self.echoed:
            self.echoed.wait_for(lambda: number not in self.sent or self.lost.is_set(), TIMEOUT)
            return number not in self.sent

    def take(self):
        try:
            for message in self.incoming:
                if message.HasField("beat_echo"):
                    self.take_echo(message.beat_echo)
                elif message.HasField("grant_lost"):
                    self.grant_lost(message.grant_lost.request_id)
                elif message.HasField("state_changed") and message.state_changed.state == session_pb2.STATE_LOST:
                    self.lose(next(iter(message.state_changed.reason.reasons), "SESSION_LOST"))
        except grpc.RpcError as err:
            self.lose(str(err.code()))
        self.lose("the stream has ended")

    def take_echo(self, echo):
        """An echo also answers the Beats before it. The contact counts from when the Beat was sent."""
        with self.echoed:
            sent = self.sent[echo.number]
            self.sent = {number: at for number, at in self.sent.items() if number > echo.number}
            if echo.HasField("timeout"):
                self.timeout = echo.timeout.ToTimedelta().total_seconds()
            age = echo.known_contact_age if echo.HasField("known_contact_age") else echo.contact_age
            self.contact = sent - echo.contact_age.ToTimedelta().total_seconds()
            self.known = sent - age.ToTimedelta().total_seconds()
            self.echoed.notify_all()

    def lose(self, reason):
        with self.echoed:
            if not self.lost.is_set():
                self.reason = reason
                self.lost.set()
            self.echoed.notify_all()

    def was_cut_off(self):
        """Reports whether the stream has ended as it does when the plugin is killed."""
        return self.reason == str(grpc.StatusCode.UNAVAILABLE)

    def resume(self, service):
        """Resumes the session in another plugin. This one's plugin was killed and waited for."""
        self.lost.wait(TIMEOUT)
        left = self.left()
        if not self.was_cut_off() or left <= 0:
            raise RuntimeError("the session is lost: " + self.reason)
        contact = time.monotonic() + left - self.timeout
        resume = session_pb2.Resume(ticket=self.ticket, session=self.handle)
        resume.known_contact_age.FromNanoseconds(int((self.timeout - left) * 1e9))
        return Session(service, resume, contact, self.timeout)

    def hang_up(self):
        """Half-closes the stream, which ends the session. The stream ends when it is closed."""
        self.outgoing.put(None)
        self.taker.join(TIMEOUT)


def reasons(err):
    """4. What matters of an error are the reasons in google.rpc.ErrorInfo, the most specific first."""
    for key, value in err.trailing_metadata():
        if key == "grpc-status-details-bin":
            for detail in error_pb2.Status.FromString(value).details:
                info = error_pb2.ErrorInfo()
                if detail.Unpack(info) and info.domain == "zkrecipes":
                    return info.metadata["reasons"].split(",")
    return []


def reason(err):
    return next(iter(reasons(err)), "")


def refused(what, f):
    try:
        f()
        print(what, "was not refused")
    except grpc.RpcError as err:
        print(what, err.code().name, reason(err))


def attach_to(channel):
    """2. The plugin lives as long as the stream of Attach."""
    plugin = Service(channel, plugin_pb2, "PluginService")
    attached = plugin.listen("Attach")
    next(attached)
    return plugin, attached


def attach(directory):
    child, channel = launch(directory)
    return child, channel, *attach_to(channel)


def main(directory):
    child, channel, plugin, attached = attach(directory)
    print("capabilities", *plugin.call("Info").capabilities)

    sessions = Service(channel, session_pb2, "SessionService")
    session, other = Session(sessions), Session(sessions)

    # 5. The lock. The request id is what the grant is called from now on.
    grants = Service(channel, grant_pb2, "GrantService")
    request = str(uuid.uuid4())
    acquired = grants.call("Acquire", lock={}, session=session.handle, request_id=request, path=PATH, data=b"python")
    print("token", acquired.grant.token)
    refused("try", lambda: grants.call(
        "Acquire", lock={}, session=other.handle, request_id=str(uuid.uuid4()), path=PATH, **{"try": True}))
    refused("path", lambda: grants.call(
        "Acquire", lock={}, session=session.handle, request_id=str(uuid.uuid4()), path="no-slash"))
    line = Service(channel, contender_pb2, "ContenderService").call("Contenders", session=other.handle, path=PATH)
    print("contenders", *[f"{c.kind} {c.data.decode()} {c.holds}" for c in line.contenders])

    # A write under two locks checks both in one transaction.
    second = str(uuid.uuid4())
    grants.call("Acquire", lock={}, session=session.handle, request_id=second, path=PATH + "-second")
    write = [{"kind": grant_pb2.OP_KIND_HELD, "request_id": second},
             {"kind": grant_pb2.OP_KIND_CREATE, "path": PATH + "-data"}]
    grants.call("Write", session=session.handle, request_id=request, ops=write)
    grants.call("Release", session=session.handle, request_id=second)
    refused("write", lambda: grants.call("Write", session=session.handle, request_id=request, ops=write))
    grants.call("Release", session=session.handle, request_id=request)
    print("released")

    other.hang_up()
    print("half-closed", other.reason)

    # 6. The plugin dies with a lock held, and another one takes up the session and the lock.
    kept = {"request_id": str(uuid.uuid4()), "path": PATH + "-kept"}
    grant = grants.call("Acquire", lock={}, session=session.handle, **kept).grant
    contenders = Service(channel, contender_pb2, "ContenderService")
    waiting = threading.Thread(target=refused, args=("cut off", lambda: grants.call(
        "Acquire", lock={}, session=session.handle, request_id=str(uuid.uuid4()), path=kept["path"])))
    waiting.start()
    while len(contenders.call("Contenders", session=session.handle, path=kept["path"]).contenders) < 2:
        pass
    child.kill()
    child.wait(TIMEOUT)
    waiting.join(TIMEOUT)
    child, channel, plugin, attached = attach(directory)
    sessions, grants = Service(channel, session_pb2, "SessionService"), Service(channel, grant_pb2, "GrantService")
    session = session.resume(sessions)
    refused("before DropRest", lambda: grants.call(
        "Acquire", lock={}, session=session.handle, request_id=str(uuid.uuid4()), path=PATH))
    again = grants.call("Acquire", lock={}, session=session.handle, resumed=grant, **kept).grant
    sessions.call("DropRest", session=session.handle)
    line = Service(channel, contender_pb2, "ContenderService").call("Contenders", session=session.handle, path=kept["path"])
    print("resumed", again.token == grant.token, *[c.holds for c in line.contenders])
    grants.call("Release", session=session.handle, request_id=kept["request_id"])

    # 7. The end.
    plugin.call("Shutdown")
    session.lost.wait(TIMEOUT)
    print("shut down", session.reason)
    attached.cancel()
    print("exit code", child.wait(TIMEOUT))


def run(main):
    with tempfile.TemporaryDirectory(prefix="zk-") as private:  # of mode 0700
        main(private)


def run_with_session(work):
    """Runs work with the channel to a plugin and a session. Then it ends the plugin."""
    def main(directory):
        child, channel, plugin, attached = attach(directory)
        session = Session(Service(channel, session_pb2, "SessionService"))
        work(channel, session)
        plugin.call("Shutdown")
        session.lost.wait(TIMEOUT)
        attached.cancel()
        print("exit code", child.wait(TIMEOUT))
    run(main)


if __name__ == "__main__":
    run(main)
