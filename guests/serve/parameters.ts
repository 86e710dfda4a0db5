/**
 * Parameters of the serving loop, which shares the machine with its guests. None of them is part of the device: they
 * determine when simulated time passes, not what happens in it, and so are not parameters of a profile.
 */
import { type ConfigOf, number } from '../../base/index.ts';

export const servingParameters = {
  sliceUs: number(
    200,
    'us of wall clock',
    [10, 100_000],
    'choice: polling a socket costs 6 us, so 3 % of a slice',
    "Wall time for which busy devices work before the guests' sockets are polled again.",
  ),
  combineHoldUs: number(
    50,
    'us of wall clock',
    [0, 10_000],
    'measured: QEMU hands over the eight stores of a BlueFlame post within 10 to 40 us',
    'A part of a line of the write-combining buffer leaves when nothing was added to it for so long.',
  ),
  busyGapPs: number(
    5_000_000,
    'ps',
    [1, 1e9],
    'choice: above every latency of a pipeline, below every timer of the device',
    'The device is busy while something is due within this time: then simulated time runs as fast as it can.',
  ),
  stepPs: number(
    1_000_000,
    'ps',
    [1000, 1e9],
    'measured: some hundred events, 20 to 100 us of a 2-core EPYC, so reading the wall clock costs nothing',
    'Simulated time between two readings of the wall clock while the device is busy.',
  ),
  loadStepPs: number(
    250_000,
    'ps',
    [1000, 1e9],
    'choice: a register read takes 0.5 us',
    'Simulated time between two checks whether a load has its answer.',
  ),
  lagMaxPs: number(
    2_000_000_000,
    'ps',
    [0, 1e12],
    'choice: above the jitter of a poll, below what a driver notices',
    'Simulated time that fell behind the wall clock by no more than this catches up while the device is idle.',
  ),
  accessLimitMs: number(
    1000,
    'ms',
    [1, 60_000],
    'choice: well below the 5 s for which nothing may hang',
    'Wall time after which an access of the guest is given up: a load reads all ones, a store is dropped.',
  ),
  waitNoticeMs: number(
    3000,
    'ms of wall clock',
    [1, 3_600_000],
    'choice: above what a command or a retry of a working driver takes, below the patience of who waits for it',
    'A register that a guest reads over and over, or a request that the device does not get done, is named after so long.',
  ),
  strangerWaitingBytes: number(
    65_536,
    'bytes',
    [0, 524_288],
    'choice: below the 212,992 bytes that its socket holds (Linux, net.core.wmem_default), far above what a slice brings forth',
    'While more bytes than this wait for the stranger at the end of the cable to read, no simulated time passes by itself.',
  ),
  strangerHoldMs: number(
    2000,
    'ms of wall clock',
    [0, 60_000],
    'choice: a hundred times what Linux in an emulated machine takes for them, below the 5 s for which nothing may hang',
    'After so long time passes again all the same, and what finds no room is dropped, until the stranger has read.',
  ),
  peerGraceMs: number(
    3000,
    'ms of wall clock',
    [0, 3_600_000],
    'choice: above the retries of a queue pair with time-out code 14 and 7 of them',
    "Wall time that a simulated host's program has to end after the last guest has gone.",
  ),
  drainPs: number(
    50_000_000,
    'ps',
    [1_000_000, 1e12],
    'choice: above the completion of everything a device can have under way at once',
    'Simulated time given to what is under way before and after a reset.',
  ),
  resetPs: number(
    2_000_000,
    'ps',
    [1000, 1e12],
    'choice: the function is ready 400 cycles of its clock after a reset',
    'Simulated time for which the slot is held in reset.',
  ),
} as const;

export type ServingConfig = ConfigOf<typeof servingParameters>;
