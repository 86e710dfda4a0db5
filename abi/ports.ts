/**
 * Port commands: INIT_PORT (old form), SET_PORT on InfiniBand, QUERY_PORT, SENSE_PORT. Source: interface sheet 3.11–3.13.
 * The Ethernet forms of SET_PORT are in `ports-ethernet.ts`.
 */

import { bits8, bits32, joined, layout, u8, u16, u32, u64 } from '../base/index.ts';

/** Opcode modifiers of SET_PORT. */
export const SetPortForm = { INFINIBAND: 0, ETHERNET: 1, BEACON: 4 } as const;
export type SetPortForm = (typeof SetPortForm)[keyof typeof SetPortForm];

/** Port types, in QUERY_PORT (as a mask) and in the output of SENSE_PORT. */
export const PortType = { UNKNOWN: 0, INFINIBAND: 1, ETHERNET: 2 } as const;
export type PortType = (typeof PortType)[keyof typeof PortType];

/** MTU codes of ports; 2^(code + 7) bytes. */
export const PortMtu = { MTU_256: 1, MTU_512: 2, MTU_1024: 3, MTU_2048: 4, MTU_4096: 5 } as const;
export type PortMtu = (typeof PortMtu)[keyof typeof PortMtu];

/** Mailbox of SET_PORT with opcode modifier 0. */
export const setPortInfiniband = layout(
  'SET_PORT InfiniBand',
  { sizeBytes: 0x100, byteOrder: 'big', source: 'sheet 3.12' },
  {
    changeMtuCap: bits32(0x00, 22, 22),
    changeVlCap: bits32(0x00, 21, 21),
    changePkeyTableSize: bits32(0x00, 20, 20),
    changeMaxGid: bits32(0x00, 19, 19),
    systemImageGuidValid: bits32(0x00, 18, 18),
    nodeGuidValid: bits32(0x00, 17, 17),
    guid0Valid: bits32(0x00, 16, 16),
    mtuCap: bits32(0x00, 15, 12, 'code of PortMtu'),
    vlCount: bits32(0x00, 7, 4),
    capabilityMaskValid: bits32(0x00, 1, 1, 'never set by Linux, which expects the mask to be taken'),
    resetQkeyViolations: bits32(0x00, 0, 0),
    capabilityMask: u32(0x04, 'as PortInfo.CapabilityMask'),
    systemImageGuid: u64(0x08),
    guid0: u64(0x10),
    nodeGuid: u64(0x18),
    pkeyTableSize: u16(0x28),
    maxGid: u16(0x2a),
  },
);

/** Mailbox of SET_PORT with opcode modifier 4: blink the port's LED. */
export const setPortBeacon = layout(
  'SET_PORT beacon',
  { sizeBytes: 4, byteOrder: 'big', source: 'sheet 3.12' },
  { seconds: u32(0x00) },
);

/** Mailbox of INIT_PORT before command interface revision 3. */
export const initPortRevision2 = layout(
  'INIT_PORT',
  { sizeBytes: 0x20, byteOrder: 'big', source: 'sheet 3.11' },
  {
    systemImageGuidValid: bits32(0x00, 18, 18),
    nodeGuidValid: bits32(0x00, 17, 17),
    guid0Valid: bits32(0x00, 16, 16),
    width: bits32(0x00, 11, 8),
    vlCount: bits32(0x00, 7, 4),
    mtuBytes: u16(0x04),
    maxGids: u16(0x06),
    maxPkeys: u16(0x0a),
    guid0: u64(0x10),
    nodeGuid: u64(0x18),
  },
);

export const queryPort = layout(
  'QUERY_PORT',
  { sizeBytes: 0x100, byteOrder: 'big', source: 'sheet 3.13' },
  {
    linkUp: bits8(0x00, 7, 7),
    autonegotiationComplete: bits8(0x00, 6, 6),
    optimisedSteering: bits8(0x00, 5, 5),
    defaultSense: bits8(0x00, 4, 4),
    suggestedEthernet: bits8(0x00, 3, 3),
    supportedTypes: bits8(0x00, 1, 0, 'mask of PortType'),
    autonegotiationEnabled: bits8(0x01, 7, 7),
    maxIbMtu: bits8(0x01, 3, 0, 'code of PortMtu'),
    maxEthernetMtu: u16(0x02),
    ibLinkSpeed: bits8(0x04, 3, 0),
    ethernetSpeed: u8(0x05, '0x00/01 10G, 02 1G, 04 100M, 08 20G, 20 56G, 40 40G'),
    maxIbWidth: bits8(0x06, 3, 0, 'mask: 1 1x, 2 4x, 4 8x, 8 12x'),
    logGids: bits8(0x07, 7, 4),
    logPkeys: bits8(0x07, 3, 0),
    logVlans: bits8(0x0a, 7, 4),
    logMacs: bits8(0x0a, 3, 0),
    maxTrafficClasses: bits8(0x0b, 7, 4),
    maxVls: bits8(0x0b, 3, 0),
    maxPkey: u16(0x0c, 'current'),
    maxGid: u16(0x0e, 'current'),
    mac: joined(u16(0x12), u32(0x14), 'burned in'),
    transceiverType: u8(0x18),
    transceiverVendor: bits32(0x18, 23, 0, 'OUI'),
    wavelength: u16(0x1c),
    transceiverCode: u64(0x20),
  },
);
