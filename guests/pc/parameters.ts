/**
 * Parameters of the PC's processor: how instructions and events become simulated time, and how closely processor and devices
 * follow each other. None of them belongs to the device.
 */
import { type ConfigOf, number } from '../../base/index.ts';

export const pcParameters = {
  memoryMib: number(
    192,
    'MiB',
    [128, 1024],
    'choice: a stock kernel, its initial file system and perftest with 16 MiB buffers',
    'Memory of the PC.',
  ),
  coreMhz: number(
    2500,
    'MHz',
    [100, 10_000],
    'choice: a server processor of the years of the default card',
    'Frequency of the processor.',
  ),
  cyclesPerInstruction: number(
    1,
    'cycles',
    [0.1, 100],
    'estimate: caches, speculation and width of a core are not modelled',
    'Cycles that each instruction takes.',
  ),
  storeCycles: number(
    10,
    'cycles',
    [0, 10_000],
    'estimate: an uncached store leaves the core through its store buffer',
    'Further cycles of a store to the device. A load takes as long as its completion needs to arrive.',
  ),
  interruptCycles: number(
    500,
    'cycles',
    [0, 100_000],
    'estimate: gate, stack, return; the instructions of the handler are counted themselves',
    "Cycles from an interrupt's arrival to the first instruction of its handler, with those of its return.",
  ),
  wakeCycles: number(
    2000,
    'cycles',
    [0, 1_000_000],
    'estimate: about 1 us out of C1',
    'Cycles in which a halted processor wakes up.',
  ),
  busyQuantumInstructions: number(
    500,
    'instructions',
    [50, 50_000],
    'choice: a polling program sees a completion at most 1000 instructions late',
    'Instructions after which devices catch up while they are busy; one quantum may take twice as many.',
  ),
  peerQuantumInstructions: number(
    1250,
    'instructions',
    [50, 50_000],
    "choice: 0.5 us at 2500 MHz, below the shortest way from one PC's store to another's memory",
    'The same while no device has anything due, but another PC runs.',
  ),
  idleQuantumInstructions: number(
    25_000,
    'instructions',
    [500, 50_000],
    'choice: 10 us at 2500 MHz, below what a timer of the guest can resolve',
    'The same while no device has anything due and no other PC runs.',
  ),
  networkLatencyUs: number(
    20,
    'us',
    [1, 100_000],
    'estimate: a switch and two cards of gigabit Ethernet; programs only find each other by it',
    'Time of a frame on the Ethernet between two PCs.',
  ),
  standstillSeconds: number(
    10,
    's of wall clock',
    [1, 3600],
    'choice: a quantum takes about a millisecond',
    'A guest without progress for so long is ended, and named.',
  ),
} as const;

export type PcConfig = ConfigOf<typeof pcParameters>;
