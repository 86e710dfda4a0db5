/** Costs of the control side: time of a command, an event and a port transition in addition to its DMA. */
import { type ConfigOf, flag, number } from '../../../base/index.ts';

const MEMORY = 'estimate below measurements.csv F-001, F-007: ibv_reg_mr 30 µs, ibv_dereg_mr 39 µs in all';

export const controlParameters = {
  commandDecodeCycles: number(
    200,
    'cycles',
    [1, 1_000_000],
    'estimate',
    'From a command being latched to its work beginning.',
  ),
  queryCycles: number(2_000, 'cycles', [0, 10_000_000], 'estimate', 'Work of a command that only reports.'),
  memoryMapCycles: number(
    800,
    'cycles',
    [0, 10_000_000],
    'estimate',
    'Work of MAP and UNMAP of FA, AUX and ICM, in addition to the pages.',
  ),
  memoryMapPerPageCycles: number(
    8,
    'cycles',
    [0, 100_000],
    'estimate',
    'Work of MAP and UNMAP per 4 KiB page.',
  ),
  initialiseCycles: number(
    400_000,
    'cycles',
    [0, 1_000_000_000],
    'estimate',
    'Work of RUN_FW, INIT_HCA and CLOSE_HCA.',
  ),
  regionCycles: number(
    5_000,
    'cycles',
    [0, 10_000_000],
    MEMORY,
    'Work of SW2HW_MPT, HW2SW_MPT, QUERY_MPT and SYNC_TPT.',
  ),
  queueCycles: number(
    4_000,
    'cycles',
    [0, 10_000_000],
    'estimate',
    'Work of creating, changing or destroying an EQ, CQ or SRQ.',
  ),
  queuePairCycles: number(6_000, 'cycles', [0, 10_000_000], 'estimate', 'Work of a QP transition.'),
  managementCycles: number(
    3_000,
    'cycles',
    [0, 10_000_000],
    'estimate',
    'Work of one MAD or of a multicast entry.',
  ),
  portCycles: number(
    10_000,
    'cycles',
    [0, 10_000_000],
    'estimate',
    'Work of INIT_PORT, CLOSE_PORT and SET_PORT.',
  ),
  trivialCycles: number(
    100,
    'cycles',
    [0, 1_000_000],
    'estimate',
    'Work of NOP and of commands that only note something.',
  ),
  conditionPollCycles: number(
    32,
    'cycles',
    [1, 100_000],
    'estimate',
    'Distance of looks at a pipeline that a command waits for.',
  ),
  fillWritesInFlight: number(
    4,
    'writes',
    [1, 64],
    'estimate',
    'Writes of 4 KiB under way at once when a queue buffer is initialised.',
  ),
  eventFifoDepth: number(
    256,
    'entries',
    [4, 4096],
    'estimate',
    'Events waiting to be written or being written.',
  ),
  eventCycles: number(4, 'cycles', [1, 1_000], 'estimate', 'Cycles the event writer is occupied by one EQE.'),
  linkInitialiseCycles: number(
    427,
    'cycles',
    [0, 1_000_000_000],
    'estimate: 1 µs',
    'From the link being trained to the port state Init.',
  ),
  subnetManagerCycles: number(
    42_700,
    'cycles',
    [0, 1_000_000_000],
    'estimate: 100 µs',
    'From state Init to the embedded subnet manager making the port active.',
  ),
  embeddedSubnetManager: flag(
    true,
    'interface sheet 7.7',
    'A port gets its LID and becomes active without a subnet manager on the fabric.',
  ),
  portLid: number(
    0,
    'LID',
    [0, 0xbfff],
    'interface sheet 7.7',
    'LID the embedded subnet manager gives port 1; 0 gives node index + 1.',
  ),
  subnetManagerLid: number(
    0xbfff,
    'LID',
    [1, 0xbfff],
    'estimate',
    'LID of the embedded subnet manager, which answers queries there: one that no port has.',
  ),
} as const;

export type ControlConfig = ConfigOf<typeof controlParameters>;
