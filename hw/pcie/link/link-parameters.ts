/**
 * Parameters of a PCIe link: those that both ends share, and those of each end's transmitter and receiver. Profiles name them
 * `pcie.link.*`, `pcie.endpointPort.*` and `pcie.rootPort.*`.
 */
import {
  assertOneOf,
  assertRange,
  type ConfigOf,
  ConfigurationError,
  number,
  type ParameterTable,
  powerOfTwo,
} from '../../../base/index.ts';
import { dataCreditsOf, POSTED } from '../tlp/index.ts';
import { linkGenerations } from './link-framings.ts';

/** Header credit fields are 8 bits wide, data credit fields 12; at most half of the range may be in use (2.6.1.2). */
export const HEADER_CREDIT_MAX = 127;
const DATA_CREDIT_MAX = 2047;

/** Shared by both ends. */
export const linkParameters = {
  generation: number(
    3,
    'generation',
    [linkGenerations[0]!, linkGenerations.at(-1)!],
    'measurements.md, group C: a ConnectX-3 is a Gen3 x8 card',
    'PCIe generation the link trained to',
  ),
  lanes: powerOfTwo(
    8,
    'lanes',
    [1, 16],
    'measurements.md, group C: a ConnectX-3 is a Gen3 x8 card',
    'lanes the link trained to',
  ),
  maxPayloadBytes: powerOfTwo(
    256,
    'bytes',
    [128, 4096],
    'measurements.csv I-001a (lspci: MPS 256)',
    'largest TLP payload (MPS) either end sends',
  ),
  latencyPs: number(
    125_000,
    'ps',
    [1_000, 10_000_000],
    'estimate; with rootComplex.readLatencyPs it puts an idle 64 B read at I-002a (436 ns)',
    'from the last bit of a packet on the lanes to its delivery: PHY, logic, flight; the lookahead between threads',
  ),
  packetAlignmentBytes: powerOfTwo(
    16,
    'bytes',
    [4, 64],
    'estimate: 128-bit packet path; gives the 55.9 Gb/s of J-001 to J-003',
    'a TLP of a back-to-back stream starts at a multiple of this; DLLPs ride in the gap when they fit',
  ),
  skpIntervalSymbols: number(
    1538,
    'symbols',
    [1180, 1538],
    'PCIe base specification 3.1, 4.2.7',
    'generations 1 and 2: one SKP ordered set of 4 symbols in so many symbols of a lane',
  ),
  skpIntervalBlocks: number(
    370,
    'blocks',
    [370, 375],
    'PCIe base specification 3.1, 4.2.7',
    'generation 3 on: one SKP ordered set, a block, in so many blocks of a lane',
  ),
  ackEveryTlps: number(
    2,
    'TLPs',
    [1, 64],
    'estimate: ack factor of PCIe base specification 3.1, table 3-7',
    'a receiver acknowledges after so many TLPs',
  ),
  ackLatencyPs: number(
    200_000,
    'ps',
    [1_000, 100_000_000],
    'estimate: order of the ack latency limits of PCIe base specification 3.1, table 3-9',
    'or when the oldest TLP not acknowledged is so old',
  ),
  updateFcPercent: number(
    25,
    '%',
    [0, 100],
    'estimate',
    'freed credits are returned (UpdateFC) when they reach this share of what was advertised',
  ),
} satisfies ParameterTable;

export type LinkConfig = ConfigOf<typeof linkParameters>;

const creditDoc = (what: string): string => `credits advertised for ${what}; 0 advertises infinite credits`;

/** Table of one end; the defaults are those of an endpoint. */
export const endpointPortParameters = {
  postedHeaders: number(
    64,
    'credits',
    [1, HEADER_CREDIT_MAX],
    'estimate',
    'credits advertised for posted headers',
  ),
  postedData: number(
    512,
    'credits',
    [1, DATA_CREDIT_MAX],
    'estimate',
    'credits advertised for posted data, 16 bytes each',
  ),
  nonPostedHeaders: number(
    16,
    'credits',
    [1, HEADER_CREDIT_MAX],
    'estimate',
    'credits advertised for non-posted headers',
  ),
  nonPostedData: number(
    16,
    'credits',
    [1, DATA_CREDIT_MAX],
    'estimate',
    'credits advertised for non-posted data',
  ),
  completionHeaders: number(
    0,
    'credits',
    [0, HEADER_CREDIT_MAX],
    'PCIe base specification 3.1, 2.6.1: infinite for endpoints and root ports',
    creditDoc('completion headers'),
  ),
  completionData: number(
    0,
    'credits',
    [0, DATA_CREDIT_MAX],
    'PCIe base specification 3.1, 2.6.1: infinite for endpoints and root ports',
    creditDoc('completion data'),
  ),
  postedFifoTlps: number(16, 'TLPs', [1, 1024], 'estimate', 'transmit fifo of posted TLPs'),
  nonPostedFifoTlps: number(16, 'TLPs', [1, 1024], 'estimate', 'transmit fifo of non-posted TLPs'),
  completionFifoTlps: number(8, 'TLPs', [1, 1024], 'estimate', 'transmit fifo of completions'),
  transmitBufferTlps: number(
    16,
    'TLPs',
    [1, 64],
    'estimate',
    'TLPs that have left the fifos and are on the lanes or have a place on them; they can no longer be overtaken',
  ),
} satisfies ParameterTable;

/** The same table with a root port's defaults: room for many reads of a device. */
export const rootPortParameters = {
  ...endpointPortParameters,
  nonPostedHeaders: number(
    64,
    'credits',
    [1, HEADER_CREDIT_MAX],
    'estimate',
    'credits advertised for non-posted headers',
  ),
  nonPostedData: number(
    64,
    'credits',
    [1, DATA_CREDIT_MAX],
    'estimate',
    'credits advertised for non-posted data',
  ),
  completionFifoTlps: number(16, 'TLPs', [1, 1024], 'estimate', 'transmit fifo of completions'),
} satisfies ParameterTable;

export type LinkEndConfig = ConfigOf<typeof endpointPortParameters>;

/** Fewest data credits with which the largest TLP can be sent at any alignment. */
export const largestTlpCredits = (link: LinkConfig): number =>
  dataCreditsOf((link.maxPayloadBytes + 4 + 3) >> 2);

/**
 * Rejects credits with which the largest TLP of a flow could never be sent, and infinite credits for requests: a receiver holds
 * requests in buffers.
 * @param path of the end's parameters
 * @throws ConfigurationError naming the parameter
 */
export function checkLinkConfig(link: LinkConfig, end: LinkEndConfig, path = 'pcie port'): void {
  assertOneOf('pcie.link.generation', link.generation, linkGenerations);
  assertOneOf('pcie.link.lanes', link.lanes, [1, 2, 4, 8, 16]);
  const largest = largestTlpCredits(link);
  assertRange(`${path}.postedHeaders`, end.postedHeaders, 1, HEADER_CREDIT_MAX);
  assertRange(`${path}.postedData`, end.postedData, largest, DATA_CREDIT_MAX);
  assertRange(`${path}.nonPostedHeaders`, end.nonPostedHeaders, 1, HEADER_CREDIT_MAX);
  assertRange(`${path}.nonPostedData`, end.nonPostedData, 1, DATA_CREDIT_MAX);
  if (end.completionData === 0 || end.completionData >= largest) return;
  throw new ConfigurationError(
    `${path}.completionData`,
    end.completionData,
    `0 (infinite) or at least ${largest}: the largest TLP takes that many`,
  );
}

/**
 * Upper bound of the channel bytes used by records of one direction: those admitted by the receiver's credits, plus
 * `completionBytes` and the completion records admitted by infinite credits (outstanding reads).
 */
export function linkChannelBytes(
  link: LinkConfig,
  receiver: LinkEndConfig,
  completionCount: number,
  completionBytes: number,
): number {
  const recordBytes = 72;
  const posted = receiver.postedHeaders + receiver.nonPostedHeaders;
  const largest = recordBytes + link.maxPayloadBytes;
  const needed = posted * largest + completionCount * recordBytes + completionBytes + 64 * recordBytes;
  // Doubled: holes of records released out of order, and the padding at the ring's end.
  return 2 ** Math.ceil(Math.log2(Math.max(4096, 2 * needed)));
}

/** Data or header credits that an end advertises for a flow; 0 is infinite. */
export function advertisedCredits(
  end: LinkEndConfig,
  flow: number,
): readonly [headers: number, data: number] {
  if (flow === POSTED) return [end.postedHeaders, end.postedData];
  return flow === 1 ? [end.nonPostedHeaders, end.nonPostedData] : [end.completionHeaders, end.completionData];
}
