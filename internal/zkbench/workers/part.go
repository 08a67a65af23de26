package workers

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A part is a record with its grants, compressed: the length of the record's JSON,
// that JSON, and the grants, whose tokens are differences to the one before. All
// numbers are varints.

func encode(r record.Record) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	raw := append(binary.AppendUvarint(nil, uint64(len(text))), text...)
	raw = binary.AppendUvarint(raw, uint64(len(r.Grants)))
	last := recipes.Token(0)
	for _, g := range r.Grants {
		for _, n := range []int64{int64(g.Token - last), int64(g.Joined), int64(g.Granted), int64(g.Left)} {
			raw = binary.AppendVarint(raw, n)
		}
		last = g.Token
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(raw)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// grantBytes is at least what a grant has, uncompressed.
const grantBytes = 4

// maxPart bounds what a part is decompressed to.
const maxPart = 16 << 20

func decode(part []byte) (record.Record, error) {
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(part)), maxPart))
	if err != nil {
		return record.Record{}, fmt.Errorf("a part cannot be read: %w", err)
	}
	b := bytes.NewBuffer(raw)
	length, err := binary.ReadUvarint(b)
	if err != nil || length > uint64(b.Len()) {
		return record.Record{}, errors.New("a part cannot be read: it is cut short")
	}
	var r record.Record
	if err := json.Unmarshal(b.Next(int(length)), &r); err != nil {
		return record.Record{}, err
	}
	n, err := binary.ReadUvarint(b)
	if err != nil || n > uint64(b.Len()/grantBytes) {
		return record.Record{}, errors.New("a part cannot be read: its grants are cut short")
	}
	last := recipes.Token(0)
	for range n {
		var v [4]int64
		for i := range v {
			if v[i], err = binary.ReadVarint(b); err != nil {
				return record.Record{}, fmt.Errorf("a part cannot be read: grants: %w", err)
			}
		}
		last += recipes.Token(v[0])
		r.Grants = append(r.Grants, load.Grant{
			Token: last, Joined: time.Duration(v[1]), Granted: time.Duration(v[2]), Left: time.Duration(v[3]),
		})
	}
	return r, nil
}
