/**
 * Capabilities that this HCA reports: the contents of QUERY_FW, QUERY_DEV_CAP, QUERY_ADAPTER and QUERY_PORT.
 *
 * It advertises only implemented features: connections, datagrams and their multicast groups, shared receive queues,
 * atomics, fast registration, invalidation, windows, violation counters and port management events. Limits are those of
 * public ConnectX-3 captures if the interface sheet has them ("C"). Sources: interface sheet 3.5, 3.7, 3.9, 3.13.
 */
import {
  bar0,
  boardIdBytes,
  CapabilityFlag,
  capabilityFlagsOf,
  commandInterfaceRevision,
  ExtendedFlag,
  flagsOf,
  icmTables,
  MemoryManagementFlag,
  PortMtu,
  PortType,
  queryAdapter,
  queryDevCap,
  queryFw,
  queryPort,
  staticRateFieldOf,
  tcpContext,
} from '../../../../abi/index.ts';
import { ConfigurationError } from '../../../../base/index.ts';
import { type LinkSetting, queryPortOfLink, staticRateCodes } from '../../../management/index.ts';
import type { CapabilityConfig, capabilityParameters } from '../../capabilities.ts';
import { RESERVED_LKEY } from '../../memory/index.ts';
import type { EthernetSide } from '../../port/index.ts';

/** BAR2 holds the UAR area, and as much for BlueFlame. */
export const hasRoomForBlueFlame = (
  { logUarAreaMib }: Pick<CapabilityConfig, 'logUarAreaMib'>,
  { bar2Bytes }: { readonly bar2Bytes: number },
): boolean => 2 * uarAreaBytes(logUarAreaMib) <= bar2Bytes;

const BYTES_PER_MIB = 1 << 20;
const PAGE_LOG_BYTES = 12;
const uarAreaBytes = (logUarAreaMib: number): number => 2 ** logUarAreaMib * BYTES_PER_MIB;

/** A table of the device: entries that the firmware keeps, out of how many. */
const reservedOf = {
  logMaxQps: 'logReservedQps',
  logMaxSrqs: 'logReservedSrqs',
  logMaxCqs: 'logReservedCqs',
  logMaxMpts: 'logReservedMpts',
  logMaxMtts: 'logReservedMtts',
} as const;
/** Smallest number of EQs: one for asynchronous events, one for completions. */
const EQS_MIN = 2;

/**
 * Rejects capabilities that no driver could use: tables without an unreserved entry, doorbells beyond BAR2.
 * @throws ConfigurationError naming the parameter
 */
export function checkCapabilities(
  config: CapabilityConfig,
  { bar2Bytes }: { readonly bar2Bytes: number },
): void {
  const refuse = (name: keyof typeof capabilityParameters, range: string): never => {
    throw new ConfigurationError(`hca.capability.${name}`, config[name], range);
  };
  if (uarAreaBytes(config.logUarAreaMib) > bar2Bytes)
    refuse('logUarAreaMib', `no more MiB than pcie.function.bar2Bytes has (${bar2Bytes / BYTES_PER_MIB})`);
  const registersMax = PAGE_LOG_BYTES - config.logBlueFlameRegisterBytes;
  if (config.logBlueFlameRegistersPerPage > registersMax)
    refuse(
      'logBlueFlameRegistersPerPage',
      `at most ${registersMax}: hca.capability.logBlueFlameRegisterBytes is ${config.logBlueFlameRegisterBytes}, and a page has 2^${PAGE_LOG_BYTES} bytes`,
    );
  for (const [name, reserved] of Object.entries(reservedOf) as [
    keyof typeof reservedOf,
    (typeof reservedOf)[keyof typeof reservedOf],
  ][])
    if (config[name] <= config[reserved])
      refuse(name, `more than hca.capability.${reserved} (${config[reserved]}): none would be left`);
  const reservedEqs = reservedEqCount(config);
  if (2 ** config.logMaxEqs < reservedEqs + EQS_MIN)
    refuse(
      'logMaxEqs',
      `at least ${EQS_MIN} EQs beyond the ${reservedEqs} that hca.capability.logReservedEqs and hca.capability.reservedUars keep`,
    );
}

/** Board id as `ibv_devinfo` prints it. */
const boardId = 'HCA_EMULATOR_4X';

/** Members of a multicast group, as log2. */
export const logMaxQpsPerGroup = 8;

/** Rings of a table that received frames are spread over, as log2. */
export const logRingTable = 7;

/** INTx pin of the clear-interrupt register. */
export const interruptPin = 0;

/** Reserved EQNs as the driver derives them: those of the reserved UAR pages, four each, or the power of two. */
export const reservedEqCount = (config: CapabilityConfig): number =>
  Math.max(4 * config.reservedUars, 1 << config.logReservedEqs);

/** UAR pages of 4 KiB. */
export const uarPageCount = (config: CapabilityConfig): number => 1 << (config.logUarAreaMib + 8);

export function firmwareReport(config: CapabilityConfig): Uint8Array {
  const { clearInterrupt, catastrophicBuffer, clock } = bar0.registers;
  return queryFw.encode({
    firmwarePages: config.firmwarePages,
    firmwareMajor: config.firmwareMajor,
    firmwareMinor: config.firmwareMinor,
    firmwareSubminor: config.firmwareSubminor,
    commandInterfaceRevision,
    logOutstandingCommands: 4,
    buildYear: 0x2026,
    buildMonth: 0x01,
    buildDay: 0x01,
    clearInterruptOffset: BigInt(clearInterrupt.offset),
    catastrophicBufferOffset: BigInt(catastrophicBuffer.offset),
    catastrophicBufferDwords: catastrophicBuffer.sizeBytes / 4,
    clockOffset: BigInt(clock.offset),
  });
}

/** Services of the data path on ports of InfiniBand. */
const infinibandFlags = capabilityFlagsOf(
  CapabilityFlag.RC,
  CapabilityFlag.UC,
  CapabilityFlag.UD,
  CapabilityFlag.XRC,
  CapabilityFlag.UD_MCAST,
  CapabilityFlag.SRQ,
  CapabilityFlag.BAD_PKEY_CNTR,
  CapabilityFlag.BAD_QKEY_CNTR,
  CapabilityFlag.MEM_WINDOW,
  CapabilityFlag.ATOMIC,
  CapabilityFlag.PORT_MNG_CHG_EV,
);

/**
 * Flags of Ethernet ports without RoCE, which carry frames only: no transport. Linux creates work queues (WQs) only if
 * the FCS can be kept.
 */
const ethernetFlags = capabilityFlagsOf(
  CapabilityFlag.PORT_MNG_CHG_EV,
  CapabilityFlag.UDP_RSS,
  CapabilityFlag.FCS_KEEP,
);

/** Operations of work requests on memory keys. Windows of type 2 belong to a QP and its PD, as on the card. */
const memoryManagementFlags = flagsOf(
  MemoryManagementFlag.LOCAL_INV,
  MemoryManagementFlag.REMOTE_INV,
  MemoryManagementFlag.FAST_REG_WR,
  MemoryManagementFlag.RESERVED_LKEY,
  MemoryManagementFlag.TYPE_2_WIN,
  MemoryManagementFlag.TYPE_2_WIN_2B,
);

/** Domains have 16 bits in the contexts; those of the firmware as on the card (interface sheet 3.7). */
const xrcDomains = { reservedXrcDomains: 2, logMaxXrcDomains: 16 };

const infinibandCapabilities = { capabilityFlags: infinibandFlags, memoryManagementFlags, ...xrcDomains };

/** Number of QPs that a steering entry of 256 bytes holds after its head of 32, four in each 16 bytes. */
const maxQpsPerSteeringEntry = 56;

/** Receive-side scaling: by either hash, over as many rings as a driver makes. */
const ethernetCapabilities = {
  capabilityFlags: ethernetFlags,
  rssXor: 1,
  rssToeplitz: 1,
  logRssTable: logRingTable,
  // Linux uses flow rules if a parameter of its module selects them.
  flowSteering: 1,
  maxQpsPerSteeringEntry,
  extendedFlags: flagsOf(ExtendedFlag.FLOWSTATS_EN),
};

/** Capabilities of Ethernet ports with RoCE: also those of InfiniBand ports. */
const roceCapabilities = {
  ...ethernetCapabilities,
  capabilityFlags: ethernetFlags | infinibandFlags | capabilityFlagsOf(CapabilityFlag.IBOE),
  memoryManagementFlags,
  ...xrcDomains,
};

const routableRoceCapabilities = {
  ...roceCapabilities,
  memoryManagementFlags: (memoryManagementFlags | flagsOf(MemoryManagementFlag.ROCE_V1_V2)) >>> 0,
};

/** Capabilities of Ethernet ports with iWARP: connected QPs over TCP connections, see reference/iwarp-interface.md. */
const iwarpCapabilities = {
  ...ethernetCapabilities,
  capabilityFlags:
    ethernetFlags | capabilityFlagsOf(CapabilityFlag.RC, CapabilityFlag.SRQ, CapabilityFlag.MEM_WINDOW),
  memoryManagementFlags,
  extendedFlags: flagsOf(ExtendedFlag.FLOWSTATS_EN, ExtendedFlag.IWARP),
};

/** The memory-management flags of ports of Ethernet without RoCE. */
const noMemoryManagement = { memoryManagementFlags: 0 };

function linkLayerCapabilities(config: CapabilityConfig) {
  if (config.linkLayer === 'infiniband') return infinibandCapabilities;
  if (config.transport === 'iwarp') {
    const { logMaxTcpConnections, iwarpExtensions } = config;
    const atomics = iwarpExtensions ? capabilityFlagsOf(CapabilityFlag.ATOMIC) : 0n;
    const capabilityFlags = iwarpCapabilities.capabilityFlags | atomics;
    return withOffloads(
      {
        ...iwarpCapabilities,
        capabilityFlags,
        auxcEntryBytes: auxcEntryBytesOf(config),
        logMaxTcpConnections,
      },
      config,
    );
  }
  const byRoce = { none: ethernetCapabilities, v1: roceCapabilities, v2: routableRoceCapabilities };
  return withOffloads({ ...noMemoryManagement, ...byRoce[config.roce] }, config);
}

interface OffloadFlags {
  readonly capabilityFlags: bigint;
  readonly memoryManagementFlags: number;
}

/** Linux derives LSO from the flag of long headers, and the modes of received checksums from CONFIG_DEV. */
function withOffloads<Report extends OffloadFlags>(report: Report, config: CapabilityConfig) {
  const { logMaxLsoBytes } = config;
  const lsoFlags = logMaxLsoBytes > 0 ? capabilityFlagsOf(CapabilityFlag.BIG_LSO_HDR) : 0n;
  const configFlags = hasChecksumSums(config) ? flagsOf(MemoryManagementFlag.CONFIG_DEV) : 0;
  const counterFlags = hasFlowCounters(config) ? capabilityFlagsOf(CapabilityFlag.COUNTERS) : 0n;
  return {
    ...report,
    logMaxLsoBytes,
    flowCounters: config.flowCounters,
    capabilityFlags: report.capabilityFlags | lsoFlags | counterFlags,
    memoryManagementFlags: (report.memoryManagementFlags | configFlags) >>> 0,
  };
}

/** True if completions report the sum of every IP packet; software reads this by CONFIG_DEV. */
export const hasChecksumSums = ({ linkLayer, receiveChecksums }: CapabilityConfig): boolean =>
  linkLayer === 'ethernet' && receiveChecksums === 'complete';

export const hasFlowCounters = ({ linkLayer, flowCounters }: CapabilityConfig): boolean =>
  linkLayer === 'ethernet' && flowCounters > 0;

export function capabilityReport(config: CapabilityConfig): Uint8Array {
  return queryDevCap.encode({
    ...queueLimits(config),
    ...otherLimits(config),
    ...entrySizes,
    ...linkLayerCapabilities(config),
    reservedLkey: RESERVED_LKEY,
    // Linux shows duplicates and local ACK time-outs of cards alone that count by port.
    perPortDiagnostics: 1,
  });
}

const queueLimits = (config: CapabilityConfig) => ({
  logMaxSrqWqes: config.logMaxSrqWqes,
  logMaxQpWqes: config.logMaxQpWqes,
  logReservedQps: config.logReservedQps,
  logMaxQps: config.logMaxQps,
  logReservedSrqs: config.logReservedSrqs,
  logMaxSrqs: config.logMaxSrqs,
  reservedEqs: 1 << config.logReservedEqs,
  logMaxCqEntries: config.logMaxCqEntries,
  logReservedCqs: config.logReservedCqs,
  logMaxCqs: config.logMaxCqs,
  logMaxEqEntries: config.logMaxEqEntries,
  logReservedEqs: config.logReservedEqs,
  logMaxEqs: config.logMaxEqs,
  logMaxRequesterReads: config.logMaxRequesterReads,
  logMaxResponderReads: config.logMaxResponderReads,
  logMaxResponderResources: config.logMaxResponderResources,
  maxSendScatterGather: config.maxSendScatterGather,
  maxSendDescriptorBytes: config.maxSendDescriptorBytes,
  maxReceiveScatterGather: config.maxReceiveScatterGather,
  maxReceiveDescriptorBytes: config.maxReceiveDescriptorBytes,
});

const bitsOf = (numbers: readonly number[]): number =>
  numbers.reduce((bits, number) => bits | (1 << number), 0);

const otherLimits = (config: CapabilityConfig) => ({
  logMaxMpts: config.logMaxMpts,
  logReservedMpts: config.logReservedMpts,
  logMaxMtts: config.logMaxMtts,
  logReservedMtts: config.logReservedMtts,
  logMaxRegionBytes: config.logMaxRegionBytes,
  localCaAckDelay: config.localCaAckDelay,
  staticRates: config.staticRates ? bitsOf(staticRateCodes.map(staticRateFieldOf)) : 0,
  ports: config.portCount,
  logMaxMessageBytes: config.logMaxMessageBytes,
  reservedUars: config.reservedUars,
  logUarAreaMib: config.logUarAreaMib,
  logMinPageBytes: config.logMinPageBytes,
  blueFlame: config.lacksBlueFlame === true ? 0 : 1,
  cqeTimestamps: 1,
  clockPageInUserSpace: 1,
  logBlueFlameRegisterBytes: config.logBlueFlameRegisterBytes,
  logBlueFlameRegistersPerPage: config.logBlueFlameRegistersPerPage,
  logMaxBlueFlamePages: Math.min(config.logUarAreaMib + 8, 63),
  logMaxQpsPerGroup,
  logMaxGroups: config.logMaxGroups,
  reservedPds: config.reservedPds,
  logMaxPds: config.logMaxPds,
  maxIcmBytes: 1n << BigInt(config.logMaxIcmBytes),
});

/** Bytes of an entry of the table auxc, which holds the contexts of TCP connections with iWARP. */
export const auxcEntryBytesOf = ({ transport }: Pick<CapabilityConfig, 'transport'>): number =>
  transport === 'iwarp' ? tcpContext.sizeBytes : icmTables.auxc.entryBytes;

const entrySizes = {
  rdmarcEntryBytes: icmTables.rdmarc.entryBytes,
  qpcEntryBytes: icmTables.qpc.entryBytes,
  auxcEntryBytes: icmTables.auxc.entryBytes,
  altcEntryBytes: icmTables.altc.entryBytes,
  eqcEntryBytes: icmTables.eqc.entryBytes,
  cqcEntryBytes: icmTables.cqc.entryBytes,
  srqcEntryBytes: icmTables.srqc.entryBytes,
  cmptEntryBytes: icmTables.cmpt.entryBytes,
  mttEntryBytes: icmTables.mtt.entryBytes,
  dmptEntryBytes: icmTables.dmpt.entryBytes,
} as const;

export const adapterReport = (): Uint8Array =>
  queryAdapter.encode({ interruptPin, vsdVendorId: 0x15b3, boardId: boardIdBytes(boardId) });

/** Fields of the answer of QUERY_PORT that change while the machine runs. */
export interface PortReportState {
  readonly isLinkUp: boolean;
  readonly logGids: number;
  readonly logPkeys: number;
  readonly linkSetting: LinkSetting;
  /** Undefined on a port of InfiniBand. */
  readonly ethernet: EthernetSide | undefined;
}

export const portReport = (config: CapabilityConfig, state: PortReportState): Uint8Array =>
  queryPort.encode({
    linkUp: state.isLinkUp ? 1 : 0,
    ...(state.ethernet === undefined
      ? { supportedTypes: PortType.INFINIBAND }
      : ethernetReport(state.ethernet)),
    maxIbMtu: PortMtu.MTU_4096,
    ...queryPortOfLink(state.linkSetting),
    logGids: state.logGids,
    logPkeys: state.logPkeys,
    // Linux expects 128 of each on any port, also of InfiniBand, and warns about fewer.
    logVlans: 7,
    logMacs: 7,
    maxVls: config.maxVls,
    maxGid: 1 << state.logGids,
    maxPkey: 1 << state.logPkeys,
  });

const ethernetReport = ({ mtuBytes, speedCode, mac }: EthernetSide) => ({
  supportedTypes: PortType.ETHERNET,
  suggestedEthernet: 1,
  maxEthernetMtu: mtuBytes,
  ethernetSpeed: speedCode,
  maxTrafficClasses: 8,
  mac,
});
