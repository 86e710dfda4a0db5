/**
 * A guest reaches the simulated host next to it by an Ethernet that carries TCP to its program, and by IP over InfiniBand, of
 * which that host implements only its addresses. The guest's neighbour table therefore has a permanent entry for that host,
 * since no host answers ARP there; every simulated host has the table of all hosts (docs/how-to/connections.md). On Ethernet
 * ports the host itself answers, and with a NIC the adapter's interface is the only one.
 */
import { portGuidOf } from '../../hw/hca/index.ts';

/** Host n is 10.0.0.(n+1): on IP over InfiniBand, and on Ethernet. */
export const peerNet = '10.0.0';
export const peerAddresses = { guest: '10.0.0.1', peer: '10.0.0.2' } as const;

/** Addresses of the guest and its peer on the Ethernet to the peer's program; the net is that of QEMU's user networking. */
export const peerNetworkAddresses = { guest: '10.0.2.15', peer: '10.0.2.100' } as const;

/** Flags and QP number of an IPoIB interface that receives nothing, and the GID of the simulated host's port (RFC 4391, 9.1.1). */
function linkAddress(): string {
  const guid = portGuidOf(1, 1).toString(16).padStart(16, '0');
  const gid = `fe80000000000000${guid}`;
  return ['80:00:00:00', ...gid.match(/../g)!].join(':');
}

/** A command of the guest: brings IP over InfiniBand up, with the simulated host as a neighbour; it may be repeated. */
const peerIpScript = `#!/bin/sh
modprobe ib_ipoib || exit 1
# By its path: the shell takes busybox's own, which knows less, for the bare name.
ip=/bin/ip
$ip addr replace ${peerAddresses.guest}/24 dev ib0 && $ip link set ib0 up || exit 1
tries=0
until [ "$(cat /sys/class/net/ib0/operstate)" = up ]; do
  tries=$((tries + 1)); [ $tries = 150 ] && { echo 'IP over InfiniBand did not come up'; exit 1; }
  sleep 0.2
done
$ip neigh replace ${peerAddresses.peer} lladdr ${linkAddress()} dev ib0 nud permanent
`;

/**
 * Run before the drivers are loaded: the Ethernet to the peer's program is up.
 * @param modules of the guest's own Ethernet card
 */
export const peerNetworkCommand = (modules: readonly string[]): string =>
  [
    `modprobe -a ${modules.join(' ')}`,
    `ip addr add ${peerNetworkAddresses.guest}/24 dev eth0`,
    'ip link set eth0 up',
    `printf "${peerNetworkAddresses.peer} peer\\n" >>/etc/hosts`,
  ].join(' && ');

/** Makes `peer-ip` a command, for InfiniBand ports. */
export const peerIpCommand = [
  `echo ${btoa(peerIpScript)} | base64 -d >/usr/bin/peer-ip`,
  'chmod +x /usr/bin/peer-ip',
].join(' && ');

/** If the simulated host has a NIC: its name resolves to its own address. */
export const peerNameCommand = `printf "${peerAddresses.peer} peer\\n" >>/etc/hosts`;
