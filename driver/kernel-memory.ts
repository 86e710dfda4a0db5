/** Memory of queues that the kernel owns. */
import { icmPageBytes } from '../abi/index.ts';
import type { Device } from './device.ts';
import { KernelError } from './kernel-error.ts';
import type { Cpu } from './platform.ts';

/** Frees the memory of a queue, last piece first. */
export type Undo = (cpu: Cpu) => Promise<void> | void;

/**
 * Allocates frames for pieces of these sizes in bytes, each physically contiguous.
 * @param undo receives the steps that free them
 * @returns their physical addresses
 * @throws KernelError ENOMEM
 */
export function takePieces<Name extends string>(
  { platform: { memory } }: Device,
  what: string,
  bytes: Readonly<Record<Name, number>>,
  undo: Undo[],
): Readonly<Record<Name, number>> {
  const taken: { readonly address: number; readonly frames: number }[] = [];
  const giveBack = (): void => {
    for (const { address, frames } of taken) memory.freeFrames(address, frames);
  };
  const addresses: Partial<Record<Name, number>> = {};
  for (const name of Object.keys(bytes) as Name[]) {
    const frames = Math.ceil(bytes[name] / icmPageBytes);
    const address = memory.allocateFrames(frames);
    if (address < 0) {
      giveBack();
      throw new KernelError('ENOMEM', `no ${frames} frames for the queues of ${what}`);
    }
    taken.push({ address, frames });
    addresses[name] = address;
  }
  undo.push(giveBack);
  return addresses as Record<Name, number>;
}
