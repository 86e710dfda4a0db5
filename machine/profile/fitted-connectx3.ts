/**
 * A ConnectX-3 and its host as far as published measurements show them (reference/measurements.csv): one set of values for all of its rows.
 * docs/reference/fidelity.md shows its accuracy.
 */
import type { ParameterValues } from './configuration.ts';

export const fittedConnectx3: ParameterValues = {
  // D-010, C-023: inbound WRITEs 35 million a second are 12 cycles each.
  'hca.receivePacketCycles': 12,
  // C-063 to C-073: 128 to 1024 bytes arrive at 32.9 to 6.1 million a second; D-015: 250 bytes at 23.3.
  'hca.receiveHeadCycles': 4,
  // The same rows, and C-094 to C-102: one width of the datapath, 128 bits, for what comes and for what is gathered.
  'hca.receiveBytesPerCycle': 16,
  'hca.gatherBytesPerCycle': 16,
  // C-076 to C-091: 26.2, 17.6, 13.2 and 10.0 million of two to five lines are 8 cycles for a line.
  'hca.wqeLineCycles': 8,
  // C-092, C-093: 5.4 million of six lines: as long as two WQEs of five.
  'hca.wqeBufferLines': 5,
  // D-026, D-045: 16 WQEs of a QP are executed without a PCIe read; a line of the WQE cache has room for 16 of 64 bytes.
  'hca.blueFlameWqes': 16,
  // D-006: 12.4 million datagrams a second of one QP.
  'hca.unreliableIntervalCycles': 34,
  // C-137: 18.4 million WRITEs a second over 64 QPs, where 16 QPs have 24.9. C-132: what comes in over 256 QPs is not slowed, so that
  // it is the requester's part of contexts alone that there is no room for.
  'hca.sendContextEntries': 56,
  // 4.76 million READs a second of one QP.
  'hca.readIntervalCycles': 90,
  // C-094: 21.4 million WRITEs a second of 4 bytes that are not inlined are 20 cycles each, with wqeDecodeCycles and requestPacketCycles.
  'hca.gatherCycles': 7,
  // C-103 to C-107: 21.9 million READs a second of a requester; C-040 to C-050: 25.8 to 18.6 of a responder.
  'hca.readRequestCycles': 21,
  'hca.readResponseCycles': 17,
  'hca.readResponseBytesPerCycle': 32,
  // with the shorter read of the root complex, a READ would be 0.3 us too fast; an atomic is not. F-023, F-029: so would be a
  // WRITE that misses the MTT cache, and a context that is not on chip holds up for 0.7 us (C-141). What is read of host memory to answer or
  // to continue takes one time more than the read itself.
  'hca.readResponseLatencyCycles': 128,
  'hca.cacheMissCycles': 128,
  // periods of messages of 2048 bytes on one QP beyond their time on the cable, 25 ns of WRITEs, 60 of SENDs
  // and 75 of READs: one value for the last two. That of WRITEs is the time a packet takes the receiver.
  'hca.writeGapCycles': 12,
  'hca.sendGapCycles': 29,
  'hca.readGapCycles': 29,
  // A-087, D-062: an atomic is one PCIe read, 390 ns: so is the payload of a WRITE that is not inlined.
  'pcie.rootComplex.readLatencyPs': 80_000,
};
