/** What to give QEMU so that its guest has the served HCAs: options as one would type them. */
import { adapterArguments } from '../linux-lab/qemu.ts';

/** Memory that the emulator can map: a memfd, shared. */
const memoryLine =
  '-object memory-backend-memfd,id=memory,size=1G,share=on -machine q35,memory-backend=memory -m 1G';

/** Lines to print: of the guest's memory, then one for each HCA. */
export const qemuOptionLines = (sockets: readonly string[]): string[] => [
  memoryLine,
  ...sockets.map((socket, index) => adapterArguments(socket, index).map(quoted).join(' ')),
];

/** A word for a shell. */
const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
