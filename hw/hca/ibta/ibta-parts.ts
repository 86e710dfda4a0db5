/** Memories, queues and counters of the IBTA transport. They are made once, before its blocks. */
import { PACKET_PAYLOAD_BYTES_MAX, PacketQueue } from '../packets/index.ts';
import type { EthernetAttachment } from '../port/index.ts';
import type { TransportSite } from '../transport/index.ts';
import {
  type CongestionConfig,
  congestionDefaults,
  infinibandMarks,
  type Line,
  NotificationPoint,
  ReactionPoint,
  roceMarks,
  trafficClassesOf,
} from './congestion/index.ts';
import {
  GlobalRoutes,
  LaneGate,
  type LanePort,
  Loopback,
  makeIbtaPacket,
  type PacketPort,
  type PortAddress,
  ReceivedPackets,
  ReorderBuffer,
  RoceRoutes,
  TransportCounters,
} from './packets/index.ts';
import type { EmbeddedManager, MulticastGroups, SpecialQps } from './receiver/index.ts';
import { SelectiveRepeat } from './requests/index.ts';
import { RoceLink } from './roce/index.ts';
import { IbtaStates } from './state/index.ts';

/** The ports that the transport uses, and their embedded managers. */
export interface IbtaAttachment {
  /** Ports of InfiniBand; unused if ports are of Ethernet. */
  readonly ports: readonly PacketPort[];
  readonly addresses: readonly PortAddress[];
  readonly specialQps: SpecialQps;
  /** The embedded managers of each port. */
  readonly managers: readonly EmbeddedManager[];
  readonly groups: MulticastGroups;
  /** Congestion control; if left out: none. */
  readonly congestion?: CongestionConfig | undefined;
  /** Whether QPs and datagrams keep the static rates of their paths; left out: they do not. */
  readonly keepsStaticRates?: boolean;
  /** Rates of the cables of InfiniBand, by port. */
  readonly lines: readonly Line[];
  /** The ports again, if they have several data lanes; left out: they have one. */
  readonly lanePorts?: readonly LanePort[] | undefined;
}

export type IbtaParts = ReturnType<typeof makeIbtaParts>;

export function makeIbtaParts(attachment: IbtaAttachment, site: TransportSite) {
  const { lp, domain, config, qps, records, ethernet, violations, allocateSram, requestSlotBytes } = site;
  const { addresses, specialQps, managers, groups } = attachment;
  const [address] = addresses as readonly [PortAddress];
  const roceLink = new RoceLink(ethernet, address, violations, qps);
  const ports = roceLink.isOn ? [roceLink] : attachment.ports;
  const loopback = new Loopback(config);
  const states = new IbtaStates(records.capacity);
  const transport = new TransportCounters();
  const reorder = new ReorderBuffer({ states, config });
  const received = new ReceivedPackets(ports, addresses, loopback, reorder);
  const queueOf = (packets: number, slotBytes: number) =>
    new PacketQueue(packets, allocateSram(packets * slotBytes), makeIbtaPacket, slotBytes);
  const headerParts = { qps, datagrams: records.datagrams, addresses };
  const congestion = attachment.congestion ?? congestionDefaults();
  const marks = ethernet === undefined ? infinibandMarks : roceMarks;
  return {
    addresses,
    specialQps,
    managers,
    groups,
    ports,
    networkHeaders:
      address.roce === undefined
        ? new GlobalRoutes(headerParts)
        : new RoceRoutes(headerParts, address.roce, trafficClassesOf(congestion)),
    loopback,
    laneGate: new LaneGate({
      domain,
      datagrams: records.datagrams,
      lanePorts: attachment.lanePorts ?? [],
    }),
    received,
    roceLink,
    receiveBuffers: received,
    frameNames: roceLink.isOn ? roceLink : undefined,
    requestPackets: queueOf(config.transmitBufferPackets, requestSlotBytes),
    responsePackets: queueOf(config.responseBufferPackets, PACKET_PAYLOAD_BYTES_MAX),
    notificationPoint: new NotificationPoint({ domain, config, congestion, marks, states }),
    reactionPoint: new ReactionPoint({
      domain,
      congestion,
      keepsStaticRates: attachment.keepsStaticRates === true,
      lines: ethernet === undefined ? attachment.lines : [lineOf(ethernet)],
    }),
    states,
    reorder,
    selectiveRepeat: reorder.isOn ? new SelectiveRepeat({ lp, states, transport, config }) : undefined,
    transport,
  };
}

/** Rate of an Ethernet port, and what each frame takes of it next to its bytes. */
function lineOf({ port }: EthernetAttachment): Line {
  const { gigabitsPerSecond, preambleBytes, interFrameGapBytes } = port.config;
  return { rateMbps: gigabitsPerSecond * 1000, overheadBytes: preambleBytes + interFrameGapBytes };
}
