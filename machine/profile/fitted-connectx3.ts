/**
 * A ConnectX-3 and its host as measured in publications (reference/measurements.csv): one set of values for all rows.
 * docs/reference/fidelity.md shows its accuracy.
 */
import type { ParameterValues } from './configuration.ts';

export const fittedConnectx3: ParameterValues = {
  // D-010, C-023: 35 million inbound WRITEs per second are 12 cycles each.
  'hca.receivePacketCycles': 12,
  // C-063 to C-073: 128 to 1024 bytes arrive at 32.9 to 6.1 million per second; D-015: 250 bytes at 23.3.
  'hca.receiveHeadCycles': 4,
  // The same rows, and C-094 to C-102: the datapath has one width, 128 bits, for received and gathered data.
  'hca.receiveBytesPerCycle': 16,
  'hca.gatherBytesPerCycle': 16,
  // C-076 to C-091: 26.2, 17.6, 13.2 and 10.0 million per second for two to five lines are 8 cycles per line.
  'hca.wqeLineCycles': 8,
  // C-092, C-093: 5.4 million per second for six lines: as long as two WQEs of five.
  'hca.wqeBufferLines': 5,
  // D-026, D-045: WQEs of a QP execute without a PCIe read; a line of the WQE cache has room for 16 of 64 bytes. From 4 on,
  // all numbers hold the same rows (docs/reference/fidelity.md, cross-validation): that of the registers is taken.
  'hca.blueFlameWqes': 16,
  // D-006: one QP sends 12.4 million datagrams per second.
  'hca.unreliableIntervalCycles': 34,
  // C-135 to C-141: 24.9, 18.4 and 5.5 million WRITEs per second over 16, 64 and 256 QPs. Over 64 QPs each WQE loads a
  // context into the requester's registers; of 256 QPs, some contexts miss their sets of lines, two at a time.
  'hca.sendContextEntries': 256,
  'hca.contextFetchesInFlight': 2,
  'hca.sendContextRegisters': 16,
  'hca.sendContextLoadCycles': 5,
  // one QP sends 4.76 million READs per second.
  'hca.readIntervalCycles': 90,
  // E-081 to E-107, six machines: 3.1 to 1.3 million READs per second over 144 to 720 QPs. The contexts of 256 QPs that
  // only serve WRITEs are on chip (C-132), so a QP that also sends has two lines. The decline is gradual.
  'hca.qpcCacheEntries': 256,
  'hca.qpcLinesPerContext': 2,
  'hca.qpcCacheWays': 4,
  'hca.qpcMissCycles': 32,
  // E-033, E-035: READs of 264 bytes both ways take 43 ns longer than of 232 bytes; one way the cable binds (C-051).
  'hca.readSegmentCycles': 14,
  // C-094: 21.4 million WRITEs per second of 4 bytes, not inlined, are 20 cycles each, with wqeDecodeCycles and
  // requestPacketCycles.
  'hca.gatherCycles': 7,
  // C-103 to C-107: a requester sends 21.9 million READs per second; C-040 to C-050: a responder answers 25.8 to 18.6
  // million.
  'hca.readRequestCycles': 21,
  'hca.readResponseCycles': 17,
  'hca.readResponseBytesPerCycle': 32,
  // 512 to 2048 bytes take 0.74 ns longer per byte. The path to the port is as wide.
  'hca.transmitBytesPerCycle': 32,
  // with the root complex's shorter read, a READ would be 0.3 us too fast, but an atomic is not. F-023,
  // F-029: a WRITE that misses the MTT cache would also be too fast; a context that is not on chip delays for 0.7 us
  // (C-141). A read of host memory that answers or continues a message takes this time in addition to the read itself.
  'hca.readResponseLatencyCycles': 128,
  'hca.cacheMissCycles': 128,
  // periods of messages of 2048 bytes on one QP beyond their time on the cable: 25 ns for
  // WRITEs, 60 for SENDs and 75 for READs; the last two share one value. The value of WRITEs is the receiver's time per
  // packet.
  'hca.writeGapCycles': 12,
  'hca.sendGapCycles': 29,
  'hca.readGapCycles': 29,
  // 0.74 ns per byte; WQEs read ahead in between the parts of a payload would make it 0.85.
  'dma.readArbitration': 'wholeRequest',
  // A-087, D-062: an atomic is one PCIe read, 390 ns: so is the payload of a WRITE that is not inlined.
  'pcie.rootComplex.readLatencyPs': 80_000,
};
