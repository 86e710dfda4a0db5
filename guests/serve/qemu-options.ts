/** Options of QEMU for a guest with the served HCAs, as typed in a shell. */
/** Memory that the emulator can map: a shared memfd. */
const memoryLine =
  '-object memory-backend-memfd,id=memory,size=1G,share=on -machine q35,memory-backend=memory -m 1G';

/** Options that make QEMU attach the adapter served at `socket`, as the `index`-th. */
export function adapterArguments(socket: string, index = 0): string[] {
  const device = {
    driver: 'vfio-user-pci',
    bus: `slot${index}`,
    socket: { type: 'unix', path: socket },
  };
  return [
    '-device',
    `pcie-root-port,id=slot${index},chassis=${index + 1},slot=${index + 1}`,
    '-device',
    JSON.stringify(device),
  ];
}

/** An Ethernet of the guest that connects it to this computer's loopback at 10.0.2.2, and forwards its own ports. */
export function peerNetworkLine(guestPorts: ReadonlyMap<number, number>): string {
  const forwarded = [...guestPorts].map(([own, port]) => `,hostfwd=tcp:127.0.0.1:${port}-:${own}`);
  return `-netdev user,id=peer${forwarded.join('')} -device virtio-net-pci,netdev=peer`;
}

/** Option of another QEMU for a network card at the other end of the cable whose socket is at `path`. */
export const wireNetworkLine = (path: string): string =>
  `-netdev ${quoted(`stream,id=wire,server=off,addr.type=unix,addr.path=${path.replaceAll(',', ',,')},reconnect-ms=200`)} -device virtio-net-pci,netdev=wire`;

/** Lines to print: for the guest's memory, then one for each HCA. */
export const qemuOptionLines = (sockets: readonly string[]): string[] => [
  memoryLine,
  ...sockets.map((socket, index) => adapterArguments(socket, index).map(quoted).join(' ')),
];

/** A word for a shell. */
const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
