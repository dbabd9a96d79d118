package webhook

import (
	"net/netip"
	"slices"
)

// reserved are networks that pass IsGlobalUnicast and are not private, but are not
// on the public Internet.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),      // this network, RFC 791
	netip.MustParsePrefix("100.64.0.0/10"),  // providers' own, RFC 6598
	netip.MustParsePrefix("192.0.0.0/24"),   // protocol assignments, RFC 6890
	netip.MustParsePrefix("198.18.0.0/15"),  // benchmarks, RFC 2544
	netip.MustParsePrefix("240.0.0.0/4"),    // RFC 1112
	netip.MustParsePrefix("::/96"),          // IPv4-compatible, RFC 4291
	netip.MustParsePrefix("64:ff9b:1::/48"), // NAT64 of a network's own, RFC 8215
	netip.MustParsePrefix("fec0::/10"),      // site-local, RFC 3879
}

// Prefixes of addresses that a gateway translates to the IPv4 address inside.
var (
	nat64 = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052: its last four bytes
	sixTo = netip.MustParsePrefix("2002::/16")    // 6to4, RFC 3056: bytes 2 to 5
)

// public reports whether a is an address of the public Internet.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("") // no prefix contains one with a zone
	switch b := a.As16(); {
	case nat64.Contains(a):
		return public(netip.AddrFrom4([4]byte(b[12:])))
	case sixTo.Contains(a):
		return public(netip.AddrFrom4([4]byte(b[2:6])))
	}
	return a.IsGlobalUnicast() && !a.IsPrivate() &&
		!slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a) })
}
