/**
 * One message alone on a quiet machine: a small one takes the ports and the cable there and back, and little else; a long one
 * takes the bytes of its packets at the data rate of the link (IBTA volume 2, chapters 5 and 6: 8 bits in 10 up to QDR, 64 in 66
 * above), whatever a port may take ahead and however slowly packets are formed meanwhile.
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WC_SUCCESS, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, type PortAttr } from '../../userlib/index.ts';
import { watchCompletions } from './observing.ts';
import { askerAndAnswerer, connectWithPeer, type Ended, leave, nowPs, post, requestOf } from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  readonly opcode: number;
  readonly lengthBytes: number;
  readonly mtuCode: number;
}

export interface Told {
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

function draw(random: Random): SceneDraft {
  const isLong = random.chance(0.75);
  const mtuCode = 1 + random.below(5);
  const args: Args = {
    opcode: random.chance(0.7) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
    lengthBytes: isLong
      ? (256 << mtuCode) * (150 + random.below(mtuCode < 4 ? 450 : 100))
      : 1 + random.below(64),
    mtuCode,
  };
  const speeds = Object.keys(laneMbps);
  // Slower than everything else, with bytes that take no whole number of picoseconds; or any.
  const isUneven = random.chance(0.4);
  const isFdr = random.chance(0.5);
  const speed = isUneven ? (isFdr ? 'FDR' : 'SDR') : speeds[random.below(speeds.length)]!;
  const lanes = isUneven ? (isFdr ? '1' : '12') : ['1', '4', '8', '12'][random.below(4)]!;
  return {
    args: { ...args },
    set: {
      'wire.speed': speed,
      'wire.lanes': lanes,
      'wire.cableMetres': random.below(40),
      'wire.portLatencyNs': isLong ? 40 : 1 + random.below(random.chance(0.5) ? 100_000 : 5000),
      'wire.transmitAheadBytes': random.chance(0.5) ? 2560 : random.below(2560),
      'wire.framingBytes': random.chance(0.5) ? 2 : random.below(17),
    },
    hasDrawnHardware: false,
  };
}

/** Posts one request that warms everything, and the measured one. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { opcode, lengthBytes, mtuCode } = program.args as unknown as Args;
  const side = await connectWithPeer(program, {
    areaBytes: lengthBytes,
    attributes: { pathMtu: mtuCode as PortAttr['activeMtu'] },
  });
  const patience = { napPs: 100 * psPerNs, patiencePs: 1_000_000 * psPerUs };
  const request = (id: number) =>
    requestOf(side, id, opcode, { offset: 0, lengthBytes: id === 0 ? 1 : lengthBytes });
  post(side.qps[0]!, request(0));
  const first = await watchCompletions(side, 1, patience);
  await program.cpu.sleep(10 * psPerUs);
  const postedPs = nowPs(program);
  post(side.qps[0]!, request(1));
  const ended = await watchCompletions(side, 1, patience);
  await barrier(program, 'over');
  await leave(side);
  return { postedPs, ended: [...first, ...ended] } as unknown as JsonValue;
}

/** Has the memory. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { lengthBytes, mtuCode } = program.args as unknown as Args;
  const side = await connectWithPeer(program, {
    areaBytes: lengthBytes,
    attributes: { pathMtu: mtuCode as PortAttr['activeMtu'] },
  });
  await barrier(program, 'over');
  await leave(side);
  return {};
}

/** Of each packet: LRH, BTH, ICRC and VCRC (IBTA 7.7, 9.2, 7.8). */
const frameBytes = 8 + 12 + 4 + 2;
const rdmaBytes = 16;
const ackBytes = 4;

function judge({ args, results, report }: ScenePlayed): string[] {
  const { opcode, lengthBytes, mtuCode } = args as unknown as Args;
  const { postedPs, ended } = results[0] as unknown as Told;
  if (ended.length !== 2 || ended.some(({ status }) => status !== IBV_WC_SUCCESS))
    return [`the requests ended as ${ended.map(({ status }) => status)}`];
  const { wire, pcie } = report.config;
  const found: string[] = [];
  const tookPs = ended[1]!.atPs - postedPs;
  const bytePs = 8e6 / (laneMbps[wire.speed]! * Number(wire.lanes));
  const mtu = 128 << mtuCode;
  const packets = Math.ceil(lengthBytes / mtu);
  const isRead = opcode === IBV_WR_RDMA_READ;
  const headers = isRead ? ackBytes * Math.min(2, packets) : rdmaBytes;
  const linkBytes = packets * (frameBytes + wire.framingBytes) + headers + ((lengthBytes + 3) & ~3);
  const cablePs = 2 * wire.portLatencyNs * psPerNs + wire.cableMetres * wire.cablePsPerMetre;
  const leastPs = 2 * cablePs + linkBytes * bytePs;
  // At the other side of the HCA: what the slot carries of a long message, in packets of `maxPayload` with 26 bytes around each.
  const slotPs = slotPsPerByte(pcie.link.generation, pcie.link.lanes) * (lengthBytes * (1 + 26 / 128) + 4096);
  const mostPs =
    2 * cablePs +
    1.06 * Math.max(linkBytes * bytePs, slotPs, lengthBytes * hcaPsPerByte(mtu)) +
    quiescentUntilPs;
  if (tookPs < leastPs)
    found.push(`${lengthBytes} bytes took ${tookPs} ps, ports, cable and link take ${leastPs}`);
  if (tookPs > mostPs)
    found.push(`${lengthBytes} bytes took ${tookPs} ps, ports, cable and link take ${mostPs}`);
  for (const { from, to, busyPs, linkBytes: bytes, packets: count, flowControlPackets } of report.wire) {
    // An idle link begins at a whole picosecond again: as often as packets come one by one, and not within a long message
    // whose next packet is ready before the one in front of it has left.
    const isAhead = wire.transmitAheadBytes >= Math.min(2560, mtu + frameBytes);
    const isLoaded =
      (from === 0) !== isRead &&
      isAhead &&
      linkBytes * bytePs > 1.2 * Math.max(slotPs, lengthBytes * hcaPsPerByte(mtu));
    const rests = isLoaded ? 30 + count / 40 + flowControlPackets : count + flowControlPackets;
    const duePs = bytes * bytePs;
    if (busyPs > duePs + 1 || busyPs < duePs - rests)
      found.push(
        `the link from ${from} to ${to} was busy for ${busyPs} ps, its ${bytes} bytes take ${duePs}`,
      );
  }
  return found;
}

/** 8 bits in 10 for the first two generations, 128 in 130 after. */
export const slotPsPerByte = (generation: number, lanes: number): number =>
  8000 / (([2.5, 5, 8, 16, 32][generation - 1] ?? 32) * (generation < 3 ? 0.8 : 128 / 130)) / lanes;

/** The HCA's own stages: 16 bytes a cycle of 427 MHz, and some ten cycles for a packet. */
export const hcaPsPerByte = (mtu: number): number => 2342 * (1 / 16 + 16 / mtu);

/** All but cable, link and slot: doorbell, WQE, gathering, forming, placing, answering and looking. */
export const quiescentUntilPs: number = 5 * psPerUs;

export const oneMessage: Scene = {
  name: 'one-message',
  about: 'one message, small or long, alone on a quiet machine with another cable',
  module: import.meta.url,
  cable: 'infiniband',
  programs: askerAndAnswerer,
  draw,
  judge,
};
