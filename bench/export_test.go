package bench

var MaxPacket = maxPacket
