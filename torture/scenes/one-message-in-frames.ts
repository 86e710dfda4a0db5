/**
 * One message alone on a quiet machine whose ports are of Ethernet: it takes the bytes of its frames at the rate of the MAC, with a
 * preamble ahead of each and a gap behind (IEEE 802.3-2018, clauses 3 and 4; IBTA vol 1, annexes A16 and A17), however slowly packets are
 * formed meanwhile: the next one is ready when the one in front of it has left.
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WC_SUCCESS, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE } from '../../userlib/index.ts';
import { hcaPsPerByte, quiescentUntilPs, slotPsPerByte, type Told } from './one-message.ts';
import { askerAndAnswerer } from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

export { answerer, asker } from './one-message.ts';

interface Args {
  readonly opcode: number;
  readonly lengthBytes: number;
  readonly mtuCode: number;
}

function draw(random: Random): SceneDraft {
  const isLong = random.chance(0.75);
  const mtuCode = 1 + random.below(5);
  const mtu = 128 << mtuCode;
  const args: Args = {
    opcode: random.chance(0.7) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
    lengthBytes: isLong ? mtu * (40 + random.below(200)) - random.below(100) : 1 + random.below(64),
    mtuCode,
  };
  const roce = random.chance(0.4) ? 'v1' : 'v2';
  return {
    args: { ...args },
    set: {
      'hca.capability.linkLayer': 'ethernet',
      'hca.capability.roce': roce,
      'ethernet.mtuBytes': mtu + 96 + random.below(200),
      'ethernet.gigabitsPerSecond': [1, 10, 20, 25, 40, 40, 50, 56, 100][random.below(9)]!,
      'ethernet.cableMetres': random.below(8),
      'ethernet.portLatencyNs': isLong ? 40 : 1 + random.below(random.chance(0.5) ? 100_000 : 5000),
      'ethernet.transmitAheadBytes': random.chance(0.5) ? 128 : random.below(4096),
      'ethernet.interFrameGapBytes': random.chance(0.7) ? 12 : random.below(200),
    },
    hasDrawnHardware: false,
  };
}

/** Of each frame, beside preamble, gap and network header: MACs and type, BTH, ICRC, FCS. */
const frameBytes = 14 + 12 + 4 + 4;
/** GRH; IPv4 and UDP. */
const networkBytes = { v1: 40, v2: 20 + 8 } as const;
const rdmaBytes = 16;
const ackBytes = 4;

function judge({ args, results, report }: ScenePlayed): string[] {
  const { opcode, lengthBytes, mtuCode } = args as unknown as Args;
  const { postedPs, ended } = results[0] as unknown as Told;
  if (ended.length !== 2 || ended.some(({ status }) => status !== IBV_WC_SUCCESS))
    return [`the requests ended as ${ended.map(({ status }) => status)}`];
  const { ethernet, pcie, hca } = report.config;
  const tookPs = ended[1]!.atPs - postedPs;
  const bytePs = 8000 / ethernet.gigabitsPerSecond;
  const mtu = 128 << mtuCode;
  const packets = Math.ceil(lengthBytes / mtu);
  const isRead = opcode === IBV_WR_RDMA_READ;
  const network = networkBytes[hca.capability.roce === 'v1' ? 'v1' : 'v2'];
  const around = ethernet.preambleBytes + frameBytes + network;
  const headers = isRead ? ackBytes * Math.min(2, packets) : rdmaBytes;
  const gapsBytes = (packets - 1) * ethernet.interFrameGapBytes;
  const linkPs = (packets * around + gapsBytes + headers + ((lengthBytes + 3) & ~3)) * bytePs;
  const cablePs = 2 * ethernet.portLatencyNs * psPerNs + ethernet.cableMetres * ethernet.cablePsPerMetre;
  const leastPs = 2 * cablePs + linkPs;
  const slotPs = slotPsPerByte(pcie.link.generation, pcie.link.lanes) * (lengthBytes * (1 + 26 / 128) + 4096);
  const mostPs =
    2 * cablePs + 1.04 * Math.max(linkPs, slotPs, lengthBytes * hcaPsPerByte(mtu)) + quiescentUntilPs;
  if (tookPs < leastPs)
    return [`${lengthBytes} bytes took ${tookPs} ps, ports, cable and frames take ${leastPs}`];
  return tookPs > mostPs + acknowledgementPs(bytePs, around)
    ? [`${lengthBytes} bytes took ${tookPs} ps, ports, cable and frames take ${mostPs}`]
    : [];
}

/** The request of a READ or the acknowledgement of a WRITE, and what the processor needs to see it. */
const acknowledgementPs = (bytePs: number, around: number): number =>
  Math.ceil((around + rdmaBytes) * bytePs) + psPerUs;

export const oneMessageInFrames: Scene = {
  name: 'one-message-in-frames',
  about: 'one message, small or long, alone on a quiet machine with ports of Ethernet',
  module: import.meta.url,
  programs: askerAndAnswerer,
  cable: 'ethernet',
  draw,
  judge,
};
