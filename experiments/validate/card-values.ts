/**
 * The fitted values of a ConnectX-3 and its host: the rows that each was derived from, and its search. A refit
 * (`../cross-validation/`) begins at `start` and tries `candidates`. `start` is the default of the profile without a fit,
 * or the lowest candidate if that default was fitted, too, or would turn the mechanism off. Paths in one key share a
 * value.
 *
 * A cycle is 2.3 ns. The published value is among the candidates, so that a refit can find it again.
 */
export interface CardValue {
  readonly rows: string;
  readonly start: number;
  readonly candidates: readonly number[];
  /** The reason for the lowest and the highest candidate. */
  readonly bounds: string;
}

export const cardValues: Readonly<Record<string, CardValue>> = {
  'hca.transmitLatencyCycles': {
    rows: 'A-001, together with receiveLatencyCycles',
    start: 20,
    candidates: [20, 40, 60, 80, 100],
    bounds: 'a packet needs some cycles, and the slot and the cable leave 0.25 of the 0.98 us of A-001',
  },
  'hca.sameQpIntervalCycles': {
    rows: 'A-088…A-094',
    start: 40,
    candidates: [40, 60, 77, 90, 110],
    bounds: 'one QP of such a card sends 4 to 10 million requests a second',
  },
  'hca.readIntervalCycles': {
    rows: 'A-126…A-133',
    start: 77,
    candidates: [60, 77, 90, 110],
    bounds: 'as for a WRITE, but READs are rarely faster',
  },
  'hca.unreliableIntervalCycles': {
    rows: 'D-006',
    start: 77,
    candidates: [20, 34, 50, 77],
    bounds: 'no more than of a reliable connection, and no less than all QPs together need',
  },
  'hca.receivePacketCycles, hca.writeGapCycles': {
    rows: 'C-023, D-010, A-100',
    start: 10,
    candidates: [8, 10, 12, 16],
    bounds: '26 to 53 million packets a second; papers report 26 to 35',
  },
  'hca.receiveHeadCycles': {
    rows: 'C-063…C-067, D-015',
    start: 0,
    candidates: [0, 2, 4, 8],
    bounds: 'nothing, up to two thirds of a whole packet',
  },
  'hca.receiveBytesPerCycle, hca.gatherBytesPerCycle': {
    rows: 'C-068…C-073, C-096…C-102',
    start: 32,
    candidates: [8, 16, 32, 64],
    bounds: 'a power of two; 8 carry half of FDR, 64 four times as much',
  },
  'hca.wqeLineCycles': {
    rows: 'C-076…C-082',
    start: 0,
    candidates: [0, 4, 6, 8, 12],
    bounds: 'nothing, up to the time of a whole WQE of one line',
  },
  'hca.wqeBufferLines': {
    rows: 'C-092, C-093',
    start: 0,
    candidates: [0, 4, 5, 6],
    bounds: '0: any number; a WQE with 256 inlined bytes has five lines or six',
  },
  'hca.gatherCycles': {
    rows: 'C-094',
    start: 0,
    candidates: [0, 4, 7, 12],
    bounds: 'nothing, up to the time of a whole WQE of one line',
  },
  'hca.sendContextEntries, hca.qpcCacheEntries': {
    rows: 'C-141, E-107',
    start: 256,
    candidates: [64, 128, 256, 512],
    bounds: 'a power of two; papers report declines from 64 to 400 QPs on',
  },
  'hca.contextFetchesInFlight': {
    rows: 'C-141',
    start: 16,
    candidates: [1, 2, 4, 16],
    bounds: 'one at a time, up to as many as of WQEs',
  },
  'hca.sendContextRegisters, hca.blueFlameWqes': {
    rows: 'C-135, C-137, D-026, D-045',
    start: 4,
    candidates: [4, 8, 16],
    bounds:
      '0 would turn the mechanism off; of 64 QPs each WQE costs more than of 16, and a line of the WQE cache holds no more than 16 of 64 bytes',
  },
  'hca.sendContextLoadCycles': {
    rows: 'C-136, C-137',
    start: 0,
    candidates: [0, 3, 5, 8, 12],
    bounds: 'nothing, up to the time of a whole WQE of one line',
  },
  'hca.qpcLinesPerContext': {
    rows: 'E-107',
    start: 1,
    candidates: [1, 2],
    bounds: 'the range of the parameter',
  },
  'hca.qpcCacheWays': {
    rows: 'E-053, E-081',
    start: 8,
    candidates: [2, 4, 8],
    bounds:
      'a power of two; one way would miss with two QPs, and more than eight decline as abruptly as eight',
  },
  'hca.qpcMissCycles': {
    rows: 'E-081…E-107',
    start: 6,
    candidates: [6, 16, 32, 64],
    bounds: 'the default, up to 0.15 us in addition to the read',
  },
  'hca.readSegmentCycles': {
    rows: 'E-033, E-035',
    start: 0,
    candidates: [0, 7, 14, 21],
    bounds: 'nothing, up to the time of a READ request',
  },
  'hca.readRequestCycles': {
    rows: 'C-103, E-001',
    start: 0,
    candidates: [0, 14, 21, 28],
    bounds: 'nothing, down to 15 million READs a second, fewer than any paper reports',
  },
  'hca.readResponseCycles': {
    rows: 'C-040',
    start: 0,
    candidates: [0, 12, 17, 24],
    bounds: 'nothing, down to 18 million READs a second, fewer than any paper reports',
  },
  'hca.readResponseBytesPerCycle, hca.transmitBytesPerCycle': {
    rows: 'C-044…C-050, A-013…A-016',
    start: 16,
    candidates: [16, 32, 64],
    bounds: 'a power of two from the width of the datapath on',
  },
  'hca.readResponseLatencyCycles, hca.cacheMissCycles': {
    rows: 'A-057, F-023',
    start: 0,
    candidates: [0, 64, 128, 192],
    bounds: 'nothing, up to 0.45 of the 1.9 us of A-057',
  },
  'hca.sendGapCycles, hca.readGapCycles': {
    rows: 'A-138, A-176',
    start: 0,
    candidates: [0, 15, 29, 45],
    bounds: 'nothing, up to 0.1 us',
  },
  'pcie.rootComplex.readLatencyPs': {
    rows: 'A-087, A-011',
    start: 170_000,
    candidates: [80_000, 110_000, 140_000, 170_000],
    bounds:
      'no less than writeLatencyPs, since a read sees earlier writes; I-002a leaves no more than 170 ns',
  },
};
