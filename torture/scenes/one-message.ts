/**
 * One message alone on a quiet machine: a small one takes the latencies of ports and cable there and back, and little more; a long one takes the
 * bytes of its packets at the data rate of the link (IBTA volume 2, chapters 5 and 6: 8 bits in 10 up to QDR, 64 in 66 above; IEEE 802.3-2018,
 * clauses 3 and 4, and IBTA vol 1, annexes A16 and A17), however many packets a port takes ahead, and however slowly packets are formed.
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import type { Report } from '../../machine/index.ts';
import type { Draft, Draws, Ended, ParameterValues, Played, Stage } from './language/index.ts';
import { connect, isWell, mtuOf, present, READ, scene, statusesOf, WRITE } from './language/index.ts';

interface Args {
  readonly opcode: number;
  readonly lengthBytes: number;
  readonly mtuCode: number;
}

interface Told {
  readonly postedPs: number;
  readonly ended: readonly Ended[];
}

/** Data rate of a lane in Mb/s. */
const laneMbps: Readonly<Record<string, number>> = {
  SDR: 2000,
  DDR: 4000,
  QDR: 8000,
  FDR10: 10_000,
  FDR: (14_062.5 * 64) / 66,
  EDR: 25_000,
};

const drawOpcode = (random: Draws): number => (random.chance(0.7) ? WRITE : READ);

const drawPortLatencyNs = (random: Draws, isLong: boolean): number =>
  isLong ? 40 : 1 + random.below(random.chance(0.5) ? 100_000 : 5000);

function drawOnInfiniband(random: Draws): Draft<Args> {
  const isLong = random.chance(0.75);
  const mtuCode = 1 + random.below(5);
  const opcode = drawOpcode(random);
  const longest = (): number => mtuOf(mtuCode + 1) * (150 + random.below(mtuCode < 4 ? 450 : 100));
  const lengthBytes = isLong ? longest() : 1 + random.below(64);
  // Slower than everything else, with bytes that take no whole number of picoseconds; or any.
  const isUneven = random.chance(0.4);
  const isFdr = random.chance(0.5);
  const set: ParameterValues = {
    'wire.speed': isUneven ? (isFdr ? 'FDR' : 'SDR') : random.oneOf(Object.keys(laneMbps)),
    'wire.lanes': isUneven ? (isFdr ? '1' : '12') : random.oneOf(['1', '4', '8', '12']),
    'wire.cableMetres': random.below(40),
    'wire.portLatencyNs': drawPortLatencyNs(random, isLong),
    'wire.transmitAheadBytes': random.chance(0.5) ? 2560 : random.below(2560),
    'wire.framingBytes': random.chance(0.5) ? 2 : random.below(17),
  };
  return { args: { opcode, lengthBytes, mtuCode }, set };
}

function drawOnEthernet(random: Draws): Draft<Args> {
  const isLong = random.chance(0.75);
  const mtuCode = 1 + random.below(5);
  const mtu = mtuOf(mtuCode);
  const opcode = drawOpcode(random);
  const lengthBytes = isLong ? mtu * (40 + random.below(200)) - random.below(100) : 1 + random.below(64);
  const set: ParameterValues = {
    'hca.capability.linkLayer': 'ethernet',
    'hca.capability.roce': random.chance(0.4) ? 'v1' : 'v2',
    'ethernet.mtuBytes': mtu + 96 + random.below(200),
    'ethernet.gigabitsPerSecond': random.oneOf([1, 10, 20, 25, 40, 40, 50, 56, 100]),
    'ethernet.cableMetres': random.below(8),
    'ethernet.portLatencyNs': drawPortLatencyNs(random, isLong),
    'ethernet.transmitAheadBytes': random.chance(0.5) ? 128 : random.below(4096),
    'ethernet.interFrameGapBytes': random.chance(0.7) ? 12 : random.below(200),
  };
  return { args: { opcode, lengthBytes, mtuCode }, set };
}

/** Posts one request that warms everything, and the measured one. */
async function asker(stage: Stage<Args>): Promise<Told> {
  const { opcode, lengthBytes, mtuCode } = stage.args;
  const side = await connect(stage, { areaBytes: lengthBytes, mtuCode });
  const patience = { napPs: 100 * psPerNs, patiencePs: 1_000_000 * psPerUs };
  side.post(0, opcode, { lengthBytes: 1 });
  const first = await side.watch(1, patience);
  await stage.sleepUs(10);
  const postedPs = stage.nowPs;
  side.post(1, opcode, { lengthBytes });
  const ended = await side.watch(1, patience);
  await stage.meet('over');
  return { postedPs, ended: [...first, ...ended] };
}

const answerer = present<Args>(({ lengthBytes: areaBytes, mtuCode }) => ({ areaBytes, mtuCode }));

/** Needs of the link for the measured message. */
interface Link {
  readonly bytePs: number;
  /** Bytes of all packets, with gaps, headers and padding. */
  readonly bytes: number;
  /** Ports and cable, one way. */
  readonly cablePs: number;
  /** Relative margin for other stages, which the model leaves out. */
  readonly slack: number;
  /** Time that may pass in addition. */
  readonly restPs: number;
}

/** Bytes of the headers of a message in addition to those of each packet: RETHs or AETHs (IBTA 9.2). */
const headersOf = (opcode: number, packets: number): number =>
  opcode === READ ? 4 * Math.min(2, packets) : rdmaBytes;
const rdmaBytes = 16;
const padded = (lengthBytes: number): number => (lengthBytes + 3) & ~3;
const packetsOf = ({ lengthBytes, mtuCode }: Args): number => Math.ceil(lengthBytes / mtuOf(mtuCode));

/** Bytes of each packet: LRH, BTH, ICRC and VCRC (IBTA 7.7, 9.2, 7.8). */
const packetBytes = 8 + 12 + 4 + 2;

function infinibandOf(args: Args, { wire }: Report['config']): Link {
  const packets = packetsOf(args);
  const around = packets * (packetBytes + wire.framingBytes);
  return {
    bytePs: 8e6 / (laneMbps[wire.speed]! * Number(wire.lanes)),
    bytes: around + headersOf(args.opcode, packets) + padded(args.lengthBytes),
    cablePs: 2 * wire.portLatencyNs * psPerNs + wire.cableMetres * wire.cablePsPerMetre,
    slack: 1.06,
    restPs: quiescentUntilPs,
  };
}

/** Bytes of each frame in addition to preamble, gap and network header: MACs and type, BTH, ICRC, FCS. */
const frameBytes = 14 + 12 + 4 + 4;
/** GRH; IPv4 and UDP. */
const networkBytes = { v1: 40, v2: 20 + 8 } as const;

function ethernetOf(args: Args, { ethernet, hca }: Report['config']): Link {
  const packets = packetsOf(args);
  const bytePs = 8000 / ethernet.gigabitsPerSecond;
  const around =
    ethernet.preambleBytes + frameBytes + networkBytes[hca.capability.roce === 'v1' ? 'v1' : 'v2'];
  const gaps = (packets - 1) * ethernet.interFrameGapBytes;
  return {
    bytePs,
    bytes: packets * around + gaps + headersOf(args.opcode, packets) + padded(args.lengthBytes),
    cablePs: 2 * ethernet.portLatencyNs * psPerNs + ethernet.cableMetres * ethernet.cablePsPerMetre,
    slack: 1.04,
    // The request of a READ or the acknowledgement of a WRITE, and the time until the processor sees it.
    restPs: quiescentUntilPs + Math.ceil((around + rdmaBytes) * bytePs) + psPerUs,
  };
}

function judge({ args, told: [{ postedPs, ended }], report }: Judged, link: Link): string[] {
  if (ended.length !== 2 || !ended.every(isWell)) return [`the requests ended as ${statusesOf(ended)}`];
  const { lengthBytes } = args;
  const tookPs = ended[1]!.atPs - postedPs;
  const linkPs = link.bytes * link.bytePs;
  const stagesPs = Math.max(linkPs, slotPsOf(args, report), hcaPsOf(args));
  const [leastPs, mostPs] = [
    2 * link.cablePs + linkPs,
    2 * link.cablePs + link.slack * stagesPs + link.restPs,
  ];
  const isRight = tookPs >= leastPs && tookPs <= mostPs;
  const due = `ports, cable and link take ${leastPs} to ${mostPs}`;
  return isRight ? [] : [`${lengthBytes} bytes took ${tookPs} ps, ${due}`];
}

type Judged = Played<Args, readonly [Told, unknown]>;

function judgeBusy({ args, report }: Judged, link: Link): string[] {
  const { wire } = report.config;
  const { mtuCode, opcode } = args;
  return report.wire.flatMap(({ from, to, busyPs, linkBytes, packets, flowControlPackets }) => {
    // An idle link begins again at a whole picosecond: for each packet if packets arrive one by one, but not within a
    // long message whose next packet is ready before the previous one has left.
    const isAhead = wire.transmitAheadBytes >= Math.min(2560, mtuOf(mtuCode) + packetBytes);
    const isLast = link.bytes * link.bytePs > 1.2 * Math.max(slotPsOf(args, report), hcaPsOf(args));
    const isLoaded = (from === 0) !== (opcode === READ) && isAhead && isLast;
    const rests = isLoaded ? 30 + packets / 40 + flowControlPackets : packets + flowControlPackets;
    const duePs = linkBytes * link.bytePs;
    const isRight = busyPs <= duePs + 1 && busyPs >= duePs - rests;
    return isRight
      ? []
      : [`the link from ${from} to ${to} was busy for ${busyPs} ps, its bytes take ${duePs}`];
  });
}

/** Time of the slot for a long message, in packets of `maxPayload` with 26 bytes around each. */
function slotPsOf({ lengthBytes }: Args, { config }: Report): number {
  const { generation, lanes } = config.pcie.link;
  // 8 bits in 10 for the first two generations, 128 in 130 after.
  const gigabits = ([2.5, 5, 8, 16, 32][generation - 1] ?? 32) * (generation < 3 ? 0.8 : 128 / 130);
  return (8000 / gigabits / lanes) * (lengthBytes * (1 + 26 / 128) + 4096);
}

/** The HCA's own stages: 16 bytes a cycle of 427 MHz, and some ten cycles for a packet. */
const hcaPsOf = ({ lengthBytes, mtuCode }: Args): number =>
  lengthBytes * 2342 * (1 / 16 + 16 / mtuOf(mtuCode));

/** All but cable, link and slot: doorbell, WQE, gathering, forming, placing, answering and looking. */
const quiescentUntilPs = 5 * psPerUs;

export const oneMessage = scene({
  about: 'one message, small or long, alone on a quiet machine with another cable',
  cable: 'infiniband',
  draw: drawOnInfiniband,
  programs: [asker, answerer],
  judge: (played) => {
    const link = infinibandOf(played.args, played.report.config);
    return [...judge(played, link), ...judgeBusy(played, link)];
  },
});

export const oneMessageInFrames = scene({
  about: 'one message, small or long, alone on a quiet machine with ports of Ethernet',
  cable: 'ethernet',
  draw: drawOnEthernet,
  programs: [asker, answerer],
  judge: (played) => judge(played, ethernetOf(played.args, played.report.config)),
});
