/**
 * The performance management agent of an HCA or a switch: counters of each port's traffic, which software reads and sets. It
 * answers ClassPortInfo, PortCounters and PortCountersExtended.
 *
 * Promises: the two sets of counters are separate, as the architecture demands: a Set of one does not change the other.
 * A counter of PortCounters stops at its largest value until it is set. A reset of an HCA sets all to zero. Nothing
 * is counted for this agent: its values are the link's own totals minus their values at the last Set.
 *
 * Packets to the port's own LID do not cross the wire and are not counted. Source: InfiniBand Architecture volume 1,
 * 16.1.3.5 and 16.1.4.11.
 */
import {
  classPortInfo,
  MadMethod,
  MadStatus,
  mad,
  PerformanceAttribute,
  PerformanceCapability,
  performanceDataBytes,
  performanceDataOffset,
  portCounters,
  portCountersExtended,
} from '../../abi/index.ts';
import type { LinkTotals } from './link-totals.ts';

/** A port whose link is counted. */
export interface CountedPort {
  /** Totals since the model was built; they only grow. */
  readonly linkTotals: LinkTotals;
}

type Total = keyof LinkTotals;

/** A counter of PortCounters: the bit of CounterSelect by which a Set names it, its width, and its total. */
interface Counter {
  readonly select: number;
  readonly bits: number;
  readonly total: Total | undefined;
}

/**
 * Counters in the order of the architecture's table. Events without a total never happen on this wire: the counter
 * keeps the value that software sets.
 */
const counters = {
  symbolErrorCounter: { select: 1 << 0, bits: 16, total: undefined },
  linkErrorRecoveryCounter: { select: 1 << 1, bits: 8, total: undefined },
  linkDownedCounter: { select: 1 << 2, bits: 8, total: 'linkDowned' },
  portRcvErrors: { select: 1 << 3, bits: 16, total: 'receiveErrors' },
  portRcvRemotePhysicalErrors: { select: 1 << 4, bits: 16, total: undefined },
  portRcvSwitchRelayErrors: { select: 1 << 5, bits: 16, total: 'relayErrors' },
  portXmitDiscards: { select: 1 << 6, bits: 16, total: 'transmitDiscards' },
  portXmitConstraintErrors: { select: 1 << 7, bits: 8, total: 'transmitConstraintErrors' },
  portRcvConstraintErrors: { select: 1 << 8, bits: 8, total: 'receiveConstraintErrors' },
  localLinkIntegrityErrors: { select: 1 << 9, bits: 4, total: undefined },
  excessiveBufferOverrunErrors: { select: 1 << 10, bits: 4, total: undefined },
  vl15Dropped: { select: 1 << 11, bits: 16, total: 'managementDrops' },
  portXmitData: { select: 1 << 12, bits: 32, total: 'transmitDwords' },
  portRcvData: { select: 1 << 13, bits: 32, total: 'receiveDwords' },
  portXmitPkts: { select: 1 << 14, bits: 32, total: 'transmitPackets' },
  portRcvPkts: { select: 1 << 15, bits: 32, total: 'receivePackets' },
  portXmitWait: { select: 1 << 16, bits: 32, total: 'transmitWaitTicks' },
} as const satisfies Record<string, Counter>;
type CounterName = keyof typeof counters;
const counterNames = Object.keys(counters) as CounterName[];

/** Counters of PortCountersExtended; those of unicast and multicast packets are not offered. */
const extendedCounters = {
  portXmitData: { select: 1 << 0, total: 'transmitDwords' },
  portRcvData: { select: 1 << 1, total: 'receiveDwords' },
  portXmitPkts: { select: 1 << 2, total: 'transmitPackets' },
  portRcvPkts: { select: 1 << 3, total: 'receivePackets' },
} as const satisfies Record<string, { select: number; total: Total }>;
type ExtendedName = keyof typeof extendedCounters;
const extendedNames = Object.keys(extendedCounters) as ExtendedName[];

/** Capabilities that perfquery shows for a ConnectX-3, and so for its switch: extended counters without IETF's, and PortXmitWait. */
const capabilityMask = PerformanceCapability.EXTENDED_WIDTH_NO_IETF | PerformanceCapability.XMIT_WAIT;
/** 4.096 us times 2^16 is 0.27 s, as in PortInfo. */
const responseTime = 16;

/** The counters of one port: for each its value minus the link's total, both at the last Set. */
interface PortOffsets {
  readonly basic: Record<CounterName, number>;
  readonly extended: Record<ExtendedName, bigint>;
}

export class PerformanceAgent {
  readonly #ports: readonly CountedPort[];
  readonly #offsets: PortOffsets[];

  constructor(ports: readonly CountedPort[]) {
    this.#ports = ports;
    this.#offsets = ports.map(offsetsOf);
  }

  /** Fills in the attribute of the response and returns the MAD status. Both are MADs of the performance class. */
  answer(request: DataView, response: DataView): number {
    const method = mad.fields.method.get(request, 0);
    if (method !== MadMethod.GET && method !== MadMethod.SET) return MadStatus.UNSUPPORTED_METHOD;
    const isSet = method === MadMethod.SET;
    const wanted = dataOf(request);
    const data = dataOf(response);
    switch (mad.fields.attributeId.get(request, 0)) {
      case PerformanceAttribute.CLASS_PORT_INFO:
        data.fill(0);
        classPortInfo.encodeInto({ baseVersion: 1, classVersion: 1, capabilityMask, responseTime }, data);
        return MadStatus.OK;
      case PerformanceAttribute.PORT_COUNTERS:
        return this.#portCounters(wanted, data, isSet);
      case PerformanceAttribute.PORT_COUNTERS_EXTENDED:
        return this.#portCountersExtended(wanted, data, isSet);
      default:
        return MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE;
    }
  }

  /** All counters are zero from here on. */
  reset(): void {
    this.#ports.forEach((port, index) => {
      this.#offsets[index] = offsetsOf(port);
    });
  }

  #portCounters(wanted: Uint8Array, data: Uint8Array, isSet: boolean): number {
    const request = portCounters.decode(wanted);
    const port = this.#ports[request.portSelect - 1];
    const offsets = this.#offsets[request.portSelect - 1]?.basic;
    if (port === undefined || offsets === undefined) return MadStatus.INVALID_FIELD;
    const totals = port.linkTotals;
    const select = request.counterSelect | ((request.counterSelect2 & 1) << 16);
    const values: Partial<Record<CounterName, number>> = {};
    for (const name of counterNames) {
      const { bits, total, select: bit } = counters[name];
      const current = total === undefined ? 0 : totals[total];
      if (isSet && (select & bit) !== 0) offsets[name] = request[name] - current;
      values[name] = Math.min(current + offsets[name], 2 ** bits - 1);
    }
    data.fill(0);
    const { portSelect, counterSelect, counterSelect2 } = request;
    portCounters.encodeInto({ portSelect, counterSelect, counterSelect2, ...values }, data);
    return MadStatus.OK;
  }

  #portCountersExtended(wanted: Uint8Array, data: Uint8Array, isSet: boolean): number {
    const request = portCountersExtended.decode(wanted);
    const port = this.#ports[request.portSelect - 1];
    const offsets = this.#offsets[request.portSelect - 1]?.extended;
    if (port === undefined || offsets === undefined) return MadStatus.INVALID_FIELD;
    const totals = port.linkTotals;
    const values: Partial<Record<ExtendedName, bigint>> = {};
    for (const name of extendedNames) {
      const { total, select: bit } = extendedCounters[name];
      const current = BigInt(totals[total]);
      if (isSet && (request.counterSelect & bit) !== 0) offsets[name] = request[name] - current;
      values[name] = BigInt.asUintN(64, current + offsets[name]);
    }
    data.fill(0);
    const { portSelect, counterSelect } = request;
    portCountersExtended.encodeInto({ portSelect, counterSelect, ...values }, data);
    return MadStatus.OK;
  }
}

/** Returns the offsets that make every counter read zero now. */
function offsetsOf({ linkTotals }: CountedPort): PortOffsets {
  const basic = Object.fromEntries(
    counterNames.map((name) => {
      const { total } = counters[name];
      return [name, total === undefined ? 0 : -linkTotals[total]];
    }),
  ) as Record<CounterName, number>;
  const extended = Object.fromEntries(
    extendedNames.map((name) => [name, -BigInt(linkTotals[extendedCounters[name].total])]),
  ) as Record<ExtendedName, bigint>;
  return { basic, extended };
}

const dataOf = (view: DataView): Uint8Array =>
  new Uint8Array(view.buffer, view.byteOffset + performanceDataOffset, performanceDataBytes);
