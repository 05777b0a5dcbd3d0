package compose

import (
	"net/netip"
	"testing"
)

func TestParsePool(t *testing.T) {
	// A pool must be an IPv4 network that holds a /28, with host bits dropped.
	for text, want := range map[string]string{
		"10.213.0.0/16": "10.213.0.0/16", "10.213.7.9/16": "10.213.0.0/16", "10.0.0.0/8": "10.0.0.0/8", "10.0.0.16/28": "10.0.0.16/28",
		"10.0.0.0/29": "", "10.0.0.0/32": "", "0.0.0.0/0": "", "10.0.0.0/7": "", "10.0.0.0": "", "": "", "fd00::/64": "", "::ffff:10.0.0.0/112": "", "10.0.0.0/16 ": "", "256.0.0.0/16": "", "10.0.0.0/-1": "",
	} {
		got, err := ParsePool(text)
		if want == "" && err == nil || want != "" && (err != nil || got.String() != want) {
			t.Errorf("ParsePool(%q) = %v, %v; want %q", text, got, err, want)
		}
	}
}

func TestFreeSubnet(t *testing.T) {
	// The subnet must be the first /28 of the pool that overlaps no network, smaller or bigger, and its absence an error.
	for _, row := range []struct {
		about, pool string
		taken       []string
		want        string
	}{
		{"nothing taken", "10.213.0.0/16", nil, "10.213.0.0/28"},
		{"first taken", "10.213.0.0/16", []string{"10.213.0.0/28"}, "10.213.0.16/28"},
		{"a gap", "10.213.0.0/16", []string{"10.213.0.0/28", "10.213.0.32/28"}, "10.213.0.16/28"},
		{"order of taken does not matter", "10.213.0.0/16", []string{"10.213.0.16/28", "10.213.0.0/28"}, "10.213.0.32/28"},
		{"bigger network inside", "10.213.0.0/16", []string{"10.213.0.0/24"}, "10.213.1.0/28"},
		{"smaller network inside", "10.213.0.0/16", []string{"10.213.0.12/30"}, "10.213.0.16/28"},
		{"a single address", "10.213.0.0/16", []string{"10.213.0.15/32"}, "10.213.0.16/28"},
		{"networks elsewhere", "10.213.0.0/16", []string{"172.17.0.0/16", "fd00::/64", "10.212.0.0/16"}, "10.213.0.0/28"},
		{"the pool is one subnet", "10.0.0.16/28", nil, "10.0.0.16/28"},
		{"one subnet, taken", "10.0.0.16/28", []string{"10.0.0.16/28"}, ""},
		{"pool inside a bigger network", "10.213.0.0/16", []string{"10.0.0.0/8"}, ""},
		{"last one free", "10.0.0.0/26", []string{"10.0.0.0/27", "10.0.0.32/28"}, "10.0.0.48/28"},
		{"exhausted", "10.0.0.0/26", []string{"10.0.0.0/27", "10.0.0.32/28", "10.0.0.50/32"}, ""},
		{"end of the address space", "255.255.255.224/27", []string{"255.255.255.224/27"}, ""},
		{"largest pool, last one free", "10.0.0.0/8", []string{"10.0.0.0/9", "10.128.0.0/10", "10.192.0.0/11", "10.224.0.0/12", "10.240.0.0/13", "10.248.0.0/14", "10.252.0.0/15", "10.254.0.0/16",
			"10.255.0.0/17", "10.255.128.0/18", "10.255.192.0/19", "10.255.224.0/20", "10.255.240.0/21", "10.255.248.0/22", "10.255.252.0/23", "10.255.254.0/24", "10.255.255.0/25",
			"10.255.255.128/26", "10.255.255.192/27", "10.255.255.224/28"}, "10.255.255.240/28"},
	} {
		var taken []netip.Prefix
		for _, p := range row.taken {
			taken = append(taken, netip.MustParsePrefix(p))
		}
		got, err := FreeSubnet(netip.MustParsePrefix(row.pool), taken)
		if row.want == "" && err == nil || row.want != "" && (err != nil || got.String() != row.want) {
			t.Errorf("%s: got %v, %v; want %q", row.about, got, err, row.want)
		}
	}
}
