/**
 * Chance for a PC, from a seed: what a real machine may do otherwise from run to run, within what its standards allow. A driver's
 * race that shows under one seed shows again under the same.
 *
 *     interrupts   arrive later, in their order: a message is a posted write that a root complex may hold up
 *     quanta       are shorter: memory that a device has written is seen at other instructions
 *     instructions cost more: other programs, caches and frequencies take their share
 *     stores       reach the device later, those after them too: a posted write waits for credits, and only a load pushes it
 *                  (PCIe 2.4.1)
 *     the processor stands still after a store: an interrupt of the platform or a page fault takes it, and the device acts meanwhile
 *
 * An x86 processor does not reorder its own stores to memory, or a store to memory and an uncached one after it (SDM 3A, 8.2.2), and
 * nothing here does. A compiler may, where the source has no barrier: such code is compiled in the order that hurts.
 */
import { SeededNumbers } from './seeded-numbers.ts';

/** Without chance everything happens at once, and as often as not. */
export interface PcChance {
  /** Delay of the next interrupt, in picoseconds. */
  interruptDelayPs(): number;
  /** Instructions of the next quantum, at most as many as asked for. */
  quantum(instructions: number): number;
  /** Further time of a quantum that has taken this long. */
  extraPs(quantumPs: number): number;
  /** Time for which a store that leaves the processor is held on its way, with all after it. */
  storeDelayPs(): number;
  /** Time for which the processor stands still after stores have reached the device. */
  stallPs(): number;
}

export const noChance: PcChance = {
  interruptDelayPs: () => 0,
  quantum: (instructions) => instructions,
  extraPs: () => 0,
  storeDelayPs: () => 0,
  stallPs: () => 0,
};

/** A message crosses a busy root complex in this time at most (estimate). */
const interruptDelayMaxPs = 5_000_000;
/** One store of this many is held, and the processor stands still after one of this many quanta with stores. */
const disturbedOneIn = 8;
/** Longest such time. */
const disturbanceMaxPs = 5_000_000;
const quantumMin = 50;
/** One instruction of this many quanta meets something that takes long. */
const slowQuantaOneIn = 64;
const slowFactor = 50;

/** @param seed any integer: the same seed, the same chance */
export function chanceOf(seed: number): PcChance {
  const numbers = new SeededNumbers(seed);
  const fraction = (): number => numbers.next() / 2 ** 32;
  const disturbancePs = (): number =>
    numbers.next() % disturbedOneIn === 0 ? Math.floor(disturbanceMaxPs * fraction()) : 0;
  return {
    storeDelayPs: disturbancePs,
    stallPs: disturbancePs,
    // Most messages are quick: the square makes long delays rare.
    interruptDelayPs: () => Math.floor(interruptDelayMaxPs * fraction() ** 2),
    quantum: (instructions) =>
      Math.max(Math.min(instructions, quantumMin), Math.ceil(instructions * fraction())),
    extraPs: (quantumPs) => {
      const isSlow = numbers.next() % slowQuantaOneIn === 0;
      return Math.floor(quantumPs * fraction() * (isSlow ? slowFactor : 1));
    },
  };
}
