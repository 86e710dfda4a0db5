/** Clock and cycles of the system DMA controller. */
import { type ConfigOf, choice, number } from '../../base/index.ts';

const DATA_SHEET = '8237A data sheet 231466';

export const systemDmaParameters = {
  clockMHz: number(
    100,
    'MHz',
    [1, 4000],
    `estimate: a controller within a chip set; ${DATA_SHEET} has 5 MHz`,
    'Clock of the system DMA controller.',
  ),
  busRequestCycles: number(
    2,
    'cycles',
    [1, 1000],
    `${DATA_SHEET}: HRQ to HLDA, at least`,
    'From asking for the bus to having it.',
  ),
  wordCycles: number(
    4,
    'cycles',
    [1, 1000],
    `${DATA_SHEET}: S1 to S4 of a normal transfer`,
    'Bus cycle of one word, without the device’s wait states.',
  ),
  blockWordCycles: number(
    3,
    'cycles',
    [1, 1000],
    `${DATA_SHEET}: S2 to S4, S1 only when upper address bits change`,
    'The same for the words after the first of a block.',
  ),
  releaseCycles: number(
    1,
    'cycles',
    [1, 1000],
    `${DATA_SHEET}: one full machine cycle of the processor between words`,
    'Cycles off the bus between two words in single mode.',
  ),
  priority: choice(
    'fixed',
    ['fixed', 'rotating'],
    DATA_SHEET,
    'Which channel has the bus next: the lowest number, or in turn.',
  ),
} as const;

export type SystemDmaConfig = ConfigOf<typeof systemDmaParameters>;
