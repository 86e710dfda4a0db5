/**
 * A library copies requests into BlueFlame registers word by word, as compiled loops do, while the bus often accepts no writes of the core's
 * write-combining buffers: stores before the fence leave in order, and every request is carried out once (Intel SDM volume 3A, 11.3;
 * rdma-core, mlx4_bf_copy and mmio_wc_start).
 *
 *     post: WQE to memory ─► fence ─► words into the register ─► fence            and nothing after it that would push
 */

import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Stage } from './language/index.ts';
import { connect, patternOf, Random, scene, sumOf, times, topic, WRITE } from './language/index.ts';

const slotBytes = 256;

function draw(random: Draws) {
  const args = {
    seed: random.below(1 << 30),
    // Bytes of one store.
    wordBytes: random.oneOf([8, 8, 16, 32]),
    qpCount: 1 + random.below(4),
    // Requests posted together; then their completions are awaited.
    bursts: times(2 + random.below(8), () => 1 + random.below(14)),
    inlineBytesMax: random.chance(0.3) ? 16 + random.below(190) : 130 + random.below(70),
  };
  const set = {
    'host.core.writeCombiningBuffers': 1 + random.below(5),
    'host.core.storeBufferEntries': random.oneOf([1, 4, 56]),
    'pcie.rootComplex.cpuEgressTlps': 1 + random.below(4),
    'pcie.endpointPort.postedHeaders': 1 + random.below(2),
    'pcie.link.generation': 1,
    'pcie.link.lanes': random.chance(0.8) ? 1 : 8,
  };
  return { args, set, hasDrawnHardware: random.chance(0.2) } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Has stores to write-combining memory leave word by word, until the next fence. */
function storeByWords({ cpu }: Stage<Args>, wordBytes: number): void {
  const pushWhole = cpu.pushDeviceStore.bind(cpu);
  cpu.pushDeviceStore = (busAddress, lengthBytes, kind) => {
    if (kind === 'uncached') return pushWhole(busAddress, lengthBytes, kind);
    let first = -1;
    for (let at = 0; at < lengthBytes; at += wordBytes) {
      const offset = pushWhole(busAddress + at, Math.min(wordBytes, lengthBytes - at), kind);
      if (first < 0) first = offset;
      if (offset !== first + at) throw new Error(`stores at ${offset} instead of ${first + at}`);
    }
    return first;
  };
}

const lengthsTopic = topic<readonly number[]>('lengths');

async function poster(stage: Stage<Args>): Promise<void> {
  const { seed, bursts, qpCount, inlineBytesMax, wordBytes } = stage.args;
  const random = new Random(seed, 'poster');
  const cap = { maxSendWr: 16, maxInlineData: inlineBytesMax };
  const side = await connect(stage, { areaBytes: sumOf(bursts) * slotBytes, qpCount, cap });
  storeByWords(stage, wordBytes);
  const addr = stage.memory.map(slotBytes);
  const lengths: number[] = [];
  for (const burst of bursts) {
    for (let at = 0; at < burst; at++) {
      const id = lengths.length;
      const lengthBytes = 1 + random.below(inlineBytesMax);
      lengths.push(lengthBytes);
      stage.memory.write(addr, patternOf(id, lengthBytes));
      const span = { lengthBytes, remoteOffset: id * slotBytes, flags: ibv.IBV_SEND_INLINE };
      const request = { ...side.request(id, WRITE, span), sgList: [{ addr, length: lengthBytes, lkey: 0 }] };
      const errno = ibv.postSend(side.qps[random.below(qpCount)]!, request);
      if (errno !== 0) stage.accuse(`request ${id} refused with ${errno}`);
    }
    await side.expectWell(burst);
    if (stage.wrong.length > 0) break;
    await stage.sleepNs(random.below(2000));
  }
  await stage.put(lengthsTopic, lengths);
  await stage.meet('over');
}

async function holder(stage: Stage<Args>): Promise<void> {
  const { bursts, qpCount } = stage.args;
  const side = await connect(stage, { areaBytes: sumOf(bursts) * slotBytes, qpCount });
  const lengths = await stage.take(lengthsTopic);
  // The ACKs do not wait for the last bytes to be in memory.
  await stage.sleepUs(100);
  for (const [id, length] of lengths.entries()) {
    const due = new Uint8Array(slotBytes);
    due.set(patternOf(id, length));
    side.expect(`request ${id}`, id * slotBytes, due);
  }
  await stage.meet('over');
}

export const copiedByWords = scene({
  about: 'requests are copied into BlueFlame registers by words, over a bus that is often full',
  draw,
  programs: [poster, holder],
});
