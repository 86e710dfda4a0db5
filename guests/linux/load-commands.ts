/** Commands that load the drivers in a guest, and wait for their ports. Each ends with status 0 or says what did not happen. */

/** Absolute path, because for the bare name the shell runs busybox's own depmod, which does not prefer updates. */
export const listModules = '/usr/sbin/depmod';

/**
 * Drivers and their user-space interfaces; then waits for the ports to come up. Without their own subnet manager, they wait
 * with their link up for one of the guest's.
 */
export const loadCommand = (
  isManaged: boolean,
): string => `modprobe mlx4_core && modprobe -a mlx4_ib ib_uverbs ib_umad rdma_ucm || exit 1
tries=0
until [ "$(cat /sys/class/infiniband/mlx4_*/ports/1/${isManaged ? 'state | grep -vc ACTIVE' : 'phys_state | grep -vc LinkUp'})" = 0 ]; do
  tries=$((tries + 1)); [ $tries = 100 ] && { echo 'a port did not become ${isManaged ? 'active' : 'linked'}'; exit 1; }
  sleep 0.1
done`;

/**
 * The same for Ethernet ports: each interface has the address NETWORK.GUEST, guests counted from 1; in the network, `$adapter` is
 * the adapter's number. RoCE has its own drivers, whose ports come up with the interfaces. With RoCE, IPv6 comes last: libmlx4
 * uses the index of a datagram's GID in Linux's table for the device's table, but Linux has one index for an address that the
 * device has twice. So the link-local address, which is also the port's first GID, must be added after the IPv4 addresses.
 */
export const ethernetLoadCommand = (
  guest: number,
  hasRoce: boolean,
  network: string,
): string => `modprobe mlx4_en || exit 1
adapter=0
for device in /sys/bus/pci/drivers/mlx4_core/0*; do
  until [ -d $device/net ]; do sleep 0.1; done
  name=$(basename $device/net/*)
${hasRoce ? '  echo 1 >/proc/sys/net/ipv6/conf/$name/disable_ipv6\n' : ''}  ip addr add ${network}.${guest + 1}/24 dev $name && ip link set $name up || exit 1
  adapter=$((adapter + 1))
done
tries=0
until [ "$(cat /sys/bus/pci/drivers/mlx4_core/0*/net/*/carrier | grep -vc 1)" = 0 ]; do
  tries=$((tries + 1)); [ $tries = 100 ] && { echo 'a link did not come up'; exit 1; }
  sleep 0.1
done${hasRoce ? roceLoadCommand : ''}`;

const roceLoadCommand = `
modprobe -a mlx4_ib ib_uverbs ib_umad rdma_ucm || exit 1
until [ "$(cat /sys/class/infiniband/mlx4_*/ports/1/state | grep -vc ACTIVE)" = 0 ]; do
  tries=$((tries + 1)); [ $tries -ge 200 ] && { echo 'a port did not become active'; exit 1; }
  sleep 0.1
done
for device in /sys/class/infiniband/mlx4_*; do
  until grep -qs :ffff: $device/ports/1/gids/*; do
    tries=$((tries + 1)); [ $tries -ge 400 ] && { echo 'a port has no GID of IPv4'; exit 1; }
    sleep 0.1
  done
  name=$(basename $device/device/net/*)
  echo 0 >/proc/sys/net/ipv6/conf/$name/disable_ipv6
  until ip -6 addr show dev $name scope link | grep fe80 | grep -qv tentative; do
    tries=$((tries + 1)); [ $tries -ge 600 ] && { echo 'an interface has no address of IPv6'; exit 1; }
    sleep 0.1
  done
done`;

/**
 * A third-party endpoint's network card, after the card that joins the guests: it has the address of an adapter's interface in
 * guest 1, and accepts frames as long as the adapter's cable carries. Soft-RoCE on it has RoCE version 2.
 */
export const strangerLoadCommand = (
  mtuBytes: number,
): string => `modprobe -a rdma_rxe crc32_generic ib_uverbs ib_umad rdma_ucm || exit 1
until [ -d /sys/class/net/eth1 ]; do sleep 0.1; done
ip link set eth1 mtu ${mtuBytes} up && ip addr add 10.2.0.2/24 dev eth1 || exit 1
rdma link add rxe0 type rxe netdev eth1 || exit 1
tries=0
until grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state; do
  tries=$((tries + 1)); [ $tries = 100 ] && { echo 'Soft-RoCE did not become active'; exit 1; }
  sleep 0.1
done`;
