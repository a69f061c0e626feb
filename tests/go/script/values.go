package script

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// The names of element types, as tensor.DType.String writes them with one lane.
var elements = map[string]tensor.DType{}

func init() {
	for _, t := range []tensor.DType{
		{Code: tensor.Bool, Bits: 8},
		{Code: tensor.Int, Bits: 8}, {Code: tensor.Int, Bits: 16}, {Code: tensor.Int, Bits: 32}, {Code: tensor.Int, Bits: 64},
		{Code: tensor.UInt, Bits: 8}, {Code: tensor.UInt, Bits: 16}, {Code: tensor.UInt, Bits: 32}, {Code: tensor.UInt, Bits: 64},
		{Code: tensor.Float, Bits: 16}, {Code: tensor.Float, Bits: 32}, {Code: tensor.Float, Bits: 64},
		{Code: tensor.Bfloat, Bits: 16}, {Code: tensor.Complex, Bits: 64},
		{Code: tensor.Float8E4M3FN, Bits: 8}, {Code: tensor.Float8E5M2, Bits: 8},
	} {
		t.Lanes = 1
		elements[t.String()] = t
	}
}

// typed is what a type in a script means: float32x3, or float32x3[] for arrays.
type typed struct {
	tensor.DType
	array bool
}

func (t typed) String() string {
	if t.array {
		return t.DType.String() + "[]"
	}
	return t.DType.String()
}

func parseType(word string) (t typed, err error) {
	name, array := strings.CutSuffix(word, "[]")
	lanes := 1
	if at := strings.LastIndexByte(name, 'x'); at > 0 {
		if n, err := strconv.Atoi(name[at+1:]); err == nil && elements[name] == (tensor.DType{}) {
			name, lanes = name[:at], n
		}
	}
	t = typed{elements[name], array}
	if t.Bits == 0 || lanes < 1 || lanes > math.MaxUint16 {
		return t, fmt.Errorf("%q is no type, such as float32x3 or int64[]", word)
	}
	t.Lanes = uint16(lanes)
	return t, nil
}

// width is the number of bytes of one number.
func (t typed) width() int { return int(t.Bits) / 8 }

// buffer is memory for numbers, aligned for all of them.
func buffer(bytes int) []byte {
	words := make([]uint64, bytes/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), bytes)
}

// encode reads rows of numbers, 1,2,3 for one of three lanes, into memory.
func (t typed) encode(dict *pathdict.Dictionary, rows []string) ([]byte, error) {
	out := buffer(len(rows) * t.Size())
	at := 0
	for _, row := range rows {
		numbers := strings.Split(row, ",")
		if row[0] == '"' || row[0] == '<' {
			numbers = []string{row}
		}
		if len(numbers) != int(t.Lanes) {
			return nil, fmt.Errorf("%s has %d numbers, %s has %d lanes", row, len(numbers), t.DType, t.Lanes)
		}
		for _, number := range numbers {
			bits, err := t.bits(dict, number)
			if err != nil {
				return nil, err
			}
			switch t.width() {
			case 1:
				out[at] = byte(bits)
			case 2:
				binary.NativeEndian.PutUint16(out[at:], uint16(bits))
			case 4:
				binary.NativeEndian.PutUint32(out[at:], uint32(bits))
			default:
				binary.NativeEndian.PutUint64(out[at:], bits)
			}
			at += t.width()
		}
	}
	return out, nil
}

// bits is a number as memory has it. A text stands for its token, a <path> for its handle.
func (t typed) bits(dict *pathdict.Dictionary, number string) (uint64, error) {
	switch {
	case number[0] == '"':
		token, err := dict.Token(strings.Trim(number, `"`))
		return uint64(token), err
	case number[0] == '<':
		path, err := dict.Path(strings.Trim(number, "<>"))
		return uint64(path), err
	case number == "true":
		return 1, nil
	case number == "false":
		return 0, nil
	case t.Code == tensor.Int:
		n, err := strconv.ParseInt(number, 10, 64)
		return uint64(n), err
	case t.Code == tensor.Float && t.Bits == 32:
		n, err := strconv.ParseFloat(number, 32)
		return uint64(math.Float32bits(float32(n))), err
	case t.Code == tensor.Float && t.Bits == 64:
		n, err := strconv.ParseFloat(number, 64)
		return math.Float64bits(n), err
	}
	return strconv.ParseUint(number, 0, 64) // types that C has no numbers of are written as their bits, 0x3c00
}

// paths is the name under which the values of usd-path, usd-parent and usd-children are shown, which have no role.
const paths = "paths"

// decode is the inverse of encode for one row.
func (t typed) decode(dict *pathdict.Dictionary, semantic tensor.Semantic, name string, row []byte) string {
	var numbers []string
	for at := 0; at < len(row); at += t.width() {
		var bits uint64
		switch cell := row[at:]; t.width() {
		case 1:
			bits = uint64(cell[0])
		case 2:
			bits = uint64(binary.NativeEndian.Uint16(cell))
		case 4:
			bits = uint64(binary.NativeEndian.Uint32(cell))
		default:
			bits = binary.NativeEndian.Uint64(cell)
		}
		numbers = append(numbers, t.number(dict, semantic, name, bits))
	}
	return strings.Join(numbers, ",")
}

func (t typed) number(dict *pathdict.Dictionary, semantic tensor.Semantic, name string, bits uint64) string {
	switch {
	case semantic == tensor.SemanticTokenID || name == "string" || name == "string[]":
		text, _ := dict.TokenString(pathdict.Token(bits))
		return `"` + text + `"`
	case semantic == tensor.SemanticRelationshipPathID || name == paths:
		path, err := dict.PathString(pathdict.Path(bits))
		if err != nil {
			return "<unknown>"
		}
		return "<" + path + ">"
	case t.Code == tensor.Bool:
		return strconv.FormatBool(bits != 0)
	case t.Code == tensor.Int:
		shift := 64 - int(t.Bits)
		return strconv.FormatInt(int64(bits<<shift)>>shift, 10)
	case t.Code == tensor.UInt:
		return strconv.FormatUint(bits, 10)
	case t.Code == tensor.Float && t.Bits == 32:
		return plain(float64(math.Float32frombits(uint32(bits))), 9)
	case t.Code == tensor.Float && t.Bits == 64:
		return plain(math.Float64frombits(bits), 17)
	}
	return fmt.Sprintf("%#x", bits)
}

// plain writes a number as C's %g does.
func plain(n float64, digits int) string {
	switch {
	case math.IsNaN(n):
		return "nan"
	case math.IsInf(n, 1):
		return "inf"
	case math.IsInf(n, -1):
		return "-inf"
	}
	return strconv.FormatFloat(n, 'g', digits, 64)
}
