/**
 * Accounting class of a TLP: the reason for sending it, carried with it on the modelled link. It is not the PCIe traffic class
 * (TC) of the TLP header and does not affect the TLP's handling; a completion echoes its request's. The PCIe code treats these
 * as opaque small integers.
 */
export const TrafficClass = {
  doorbell: 0,
  blueFlame: 1,
  doorbellRecord: 2,
  wqeRead: 3,
  payloadRead: 4,
  payloadWrite: 5,
  cqe: 6,
  eqe: 7,
  context: 8,
  translation: 9,
  command: 10,
  msix: 11,
  register: 12,
  config: 13,
  message: 14,
  // ---- of the conventional NIC ----
  /** Words that a core or a DMA controller moves to or from the packet buffer. */
  packetBuffer: 15,
  descriptorRead: 16,
  descriptorWrite: 17,
  frameRead: 18,
  frameWrite: 19,
} as const;

export type TrafficClassName = keyof typeof TrafficClass;

/** Names by number, for reports. */
export const trafficClassNames = Object.keys(TrafficClass) as readonly TrafficClassName[];
export const trafficClassCount = trafficClassNames.length;
