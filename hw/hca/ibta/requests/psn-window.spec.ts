/**
 * A requester may have 2^23 - 1 PSNs outstanding, including those of the responses for which its READs wait (IBTA vol.
 * 1, 9.7.2): with more, a responder would mistake a new request for a duplicate. Requests are lost on purpose here, so
 * that no test moves gigabytes.
 */
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../../abi/cqe.ts';
import { PathMtu, QpState } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import type { SendRequest } from '../../testing/data-path-verbs.ts';
import { psnA } from '../../testing/data-path-verbs.ts';
import { type Scene, type SceneOptions, scene, summaryOf } from '../../testing/scenario.ts';

const PSNS_MAX = 2 ** 23 - 1;
const MTU_BYTES = 256;
const fields = { pathMtu: PathMtu.MTU_256, logMaxMessage: 31, retryCount: 2 };
const smallPackets = (more: SceneOptions = {}): Promise<Scene> =>
  scene({ a: { fields }, b: { fields }, ...more });

/**
 * Returns a READ whose response takes `psns` PSNs, into a list of buffers of at most 1 GiB; only its request is ever
 * checked.
 */
function readOf({ local, target }: Scene, psns: number): SendRequest {
  const segments = [];
  for (let left = psns * MTU_BYTES; left > 0; left -= 2 ** 30)
    segments.push({ ...local.part(0, 8), bytes: Math.min(left, 2 ** 30) });
  return { opcode: WqeOpcode.RDMA_READ, segments, remote: target };
}

const offsetsAt = ({ bench, b }: Scene): number[] =>
  bench.b.port.packets.filter(({ qpn }) => qpn === b.qpn).map(({ psn }) => (psn - psnA(0)) & 0xff_ffff);

const requesterOf = ({ bench }: Scene) => bench.a.dataPath.accounts.find(({ name }) => name === 'requester')!;

describe('the PSNs of a requester', () => {
  it('IBTA 9.7.2: are at most 2^23 - 1 outstanding: of four READs of 512 MiB in packets of 256 bytes, three', async () => {
    const given = await smallPackets();
    const { bench, a } = given;
    bench.b.port.drops = () => true;
    for (const bytes of [4096, 2 ** 29, 2 ** 29, 2 ** 29, 2 ** 29]) a.post(readOf(given, bytes / MTU_BYTES));
    a.ring();
    await bench.run(50);
    expect(offsetsAt(given)).toEqual([0, 16, 16 + 2 ** 21, 16 + 2 * 2 ** 21]);
    const { stallReasons, stalledCycles } = requesterOf(given);
    requesterOf(given).close(bench.a.domain.clock.cyclesElapsed(bench.a.lp.nowPs));
    // All but the first microseconds of 50 at 427 MHz.
    expect(stalledCycles[stallReasons.indexOf('psnWindow')]).toBeGreaterThan(40 * 427);
  });

  it('IBTA 9.7.2: are used to the last one, and the next request follows when one is acknowledged', async () => {
    const given = await smallPackets({ ackTimeout: 1 });
    const { bench, a, local, target } = given;
    bench.b.port.drops = () => true;
    a.post(readOf(given, 2));
    a.post(readOf(given, PSNS_MAX - 2));
    a.post({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 8)], remote: target });
    a.ring();
    await bench.run(5);
    expect(offsetsAt(given)).toEqual([0, 2]);
    // The first READ is sent again after the ACK time-out, and answered with two packets.
    bench.b.port.drops = ({ psn }) => psn !== psnA(0);
    await bench.run(15);
    const seen = offsetsAt(given);
    expect(seen).toContain(PSNS_MAX);
    const answered = bench.a.port.packets.find(({ psn }) => psn === psnA(0))!;
    const followed = bench.b.port.packets.find(({ psn }) => psn === psnA(PSNS_MAX))!;
    expect(followed.timePs).toBeGreaterThan(answered.timePs);
    expect(summaryOf(given.aCq.drain())).toEqual(['send 0: 0x0']);
  });

  it('IBTA 9.7.2: are never more than that of one message: a longer one is a local length error', async () => {
    for (const [psns, left] of [
      [PSNS_MAX, [0]],
      [PSNS_MAX + 1, []],
    ] as const) {
      const given = await smallPackets();
      const { bench, a, aCq } = given;
      bench.b.port.drops = () => true;
      a.send(readOf(given, psns));
      await bench.run(20);
      expect(offsetsAt(given)).toEqual(left);
      const isSent = psns === PSNS_MAX;
      expect(a.state).toBe(isSent ? QpState.RTS : QpState.ERR);
      expect(aCq.drain().map(({ syndrome }) => syndrome)).toEqual(
        isSent ? [] : [CqeSyndrome.LOCAL_LENGTH_ERR],
      );
    }
  });

  it('IBTA 9.7.2: are given back when the QP fails, and its requests are flushed', async () => {
    const given = await smallPackets();
    const { bench, a, aCq } = given;
    bench.b.port.drops = () => true;
    for (const psns of [PSNS_MAX, 1, 1]) a.post(readOf(given, psns));
    a.ring();
    await bench.run(5);
    a.toError();
    await bench.run(20);
    expect(summaryOf(aCq.drain())).toEqual(['send 0: 0x5', 'send 1: 0x5', 'send 2: 0x5']);
  });
});

describe('a responder that has sent no answer of a READ for more than 2^23 PSNs', () => {
  it('IBTA 9.7.3: takes none of the next one for a repetition', async () => {
    const given = await scene();
    const { bench, a, b, aCq } = given;
    const state = bench.b.dataPath.parts.states.rows[b.slot]!;
    state.unansweredPsn = (state.expectedPsn - 0x90_0000) & 0xff_ffff;
    a.send({ ...readOf(given, 1), segments: [given.local.part(0, 3000)] });
    await bench.run(20);
    expect(aCq.drain().map(({ syndrome }) => syndrome)).toEqual([0]);
    expect(bench.b.dataPath.blocks.transmitter.repeatedPacketCount).toBe(0);
  });

  it('IBTA 9.7.3: forgets it, and acknowledges a duplicate with all that it has executed', async () => {
    const given = await scene();
    const { bench, a, b, local, target } = given;
    const state = bench.b.dataPath.parts.states.rows[b.slot]!;
    state.answeredPsn = (state.expectedPsn - PSNS_MAX) & 0xff_ffff;
    const write = { opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 8)], remote: target };
    a.send(write);
    await bench.run(10);
    expect(state.answeredPsn).toBe(-1);
    expect(bench.a.port.packets.at(-1)!.psn).toBe(psnA(0));
  });
});
