package gateway

import "encoding/binary"

// hello is a ClientHello that is made by hand, also such as no library makes.
type hello struct {
	names   []string
	padding int // bytes of an extension before the names
	ssl2    bool
	pieces  int // the length of its records; 0: as long as may be
}

// bytes are its records. The token is in its random bytes.
func (h hello) bytes(token string) []byte {
	if h.ssl2 {
		return append([]byte{0x80, byte(9 + len(token)), 1, 0, 2, 0, 3, 0, 0, 0, byte(len(token) - 3)}, token...)
	}
	random := make([]byte, 32)
	copy(random, token)
	body := append([]byte{3, 3}, random...)
	body = append(body, 0)                // no session
	body = append(body, 0, 2, 0x13, 0x01) // one suite
	body = append(body, 1, 0)             // no compression
	extensions := extension(21, make([]byte, h.padding))
	if h.padding == 0 {
		extensions = nil
	}
	extensions = append(extensions, extension(0, serverNames(h.names))...)
	extensions = append(extensions, extension(43, []byte{2, 3, 4})...)     // TLS 1.3
	extensions = append(extensions, extension(10, []byte{0, 2, 0, 29})...) // X25519
	extensions = append(extensions, extension(13, []byte{0, 2, 4, 3})...)  // a signature
	extensions = append(extensions, extension(51, []byte{0, 0})...)        // no key yet
	body = append(binary.BigEndian.AppendUint16(body, uint16(len(extensions))), extensions...)
	message := append([]byte{1, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
	return inRecords(message, h.pieces)
}

func extension(number uint16, data []byte) []byte {
	head := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, number), uint16(len(data)))
	return append(head, data...)
}

func serverNames(names []string) []byte {
	var list []byte
	for _, n := range names {
		list = append(binary.BigEndian.AppendUint16(append(list, 0), uint16(len(n))), n...)
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(list))), list...)
}

func inRecords(message []byte, length int) []byte {
	if length == 0 {
		length = 16 << 10
	}
	var all []byte
	for len(message) > 0 {
		n := min(length, len(message))
		all = append(binary.BigEndian.AppendUint16(append(all, 22, 3, 1), uint16(n)), message[:n]...)
		message = message[n:]
	}
	return all
}
