/** Timestamps of completions (ibv_create_cq_ex) and the clock that counts them (ibv_query_rt_values_ex), by programs on both networks. */
import { describe, expect, it } from 'vitest';
import { connectRc, createBuffer, createRcQps, openEndpoint } from '../experiments/workloads/rc-endpoint.ts';
import { Machine } from '../machine/index.ts';
import type { ParameterValues } from '../machine/profile/index.ts';
import * as ibv from '../userlib/index.ts';

const writes = 5;

interface Times {
  /** Core clock before a WRITE was posted, at its completion, and after that was polled. */
  readonly clocks: readonly (readonly [before: number, at: number, after: number])[];
  readonly clockKhz: number;
  /** Simulated time of the last reading. */
  readonly instantPs: number;
}

async function timesOf(set: ParameterValues): Promise<Times> {
  await using machine = await Machine.create({ set });
  for (const node of [0, 1])
    await machine.load({
      node,
      run: async (program) => {
        const endpoint = await openEndpoint(program);
        const { context } = endpoint;
        const wcFlags = ibv.IBV_WC_STANDARD_FLAGS | ibv.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
        const cq = await ibv.createCqEx(context, { cqe: 16, wcFlags });
        const [qp] = await createRcQps(
          endpoint,
          1,
          { send: cq, receive: cq },
          { maxSendWr: 4, maxRecvWr: 1 },
        );
        const buffer = await createBuffer(endpoint, 64);
        const note = { address: buffer.address, rkey: buffer.region.rkey };
        const peer = await connectRc(endpoint, [qp!], 'timed', note);
        if (node === 1) return await program.exchange.take('done');
        const remote = peer.note as typeof note;
        const clock = async (): Promise<number> => {
          const values = { compMask: ibv.IBV_VALUES_MASK_RAW_CLOCK, rawClock: 0 };
          await ibv.queryRtValuesEx(context, values);
          return values.rawClock;
        };
        const clocks: [number, number, number][] = [];
        for (let wrId = 0; wrId < writes; wrId++) {
          const before = await clock();
          ibv.postSend(qp!, {
            wrId,
            sgList: [{ addr: buffer.address, length: 64, lkey: buffer.region.lkey }],
            numSge: 1,
            opcode: ibv.IBV_WR_RDMA_WRITE,
            sendFlags: ibv.IBV_SEND_SIGNALED,
            wr: { rdma: { remoteAddr: remote.address, rkey: remote.rkey } },
          });
          while ((await ibv.startPoll(cq)) !== 0) await program.cpu.sleep(100_000);
          if (cq.status !== ibv.WcStatus.IBV_WC_SUCCESS)
            throw new Error(`completion with status ${cq.status}`);
          const at = ibv.wcReadCompletionTs(cq);
          ibv.endPoll(cq);
          clocks.push([before, at, await clock()]);
        }
        const instantPs = Number(program.cpu.instantPs);
        await program.exchange.put('done', true);
        const { hcaCoreClock: clockKhz } = await ibv.queryDeviceEx(context);
        return { clocks, clockKhz, instantPs };
      },
    });
  await machine.run();
  const [times] = await machine.results<[Times]>();
  return times;
}

describe.each([
  ['InfiniBand', {}],
  ['RoCE v2', { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' }],
  ['InfiniBand with a core clock of 250 MHz', { 'hca.coreClockMHz': 250 }],
] as const)('the timestamp of a completion on %s', (_name, set) => {
  it('sheet 6.6: is the core clock between the post and the poll', async () => {
    const { clocks, clockKhz, instantPs } = await timesOf(set);
    expect(clocks).toHaveLength(writes);
    for (const [before, at, after] of clocks) {
      expect(at).toBeGreaterThan(before);
      expect(at).toBeLessThan(after);
    }
    // The clock began with the machine: its last reading is the present time, minus the latency of a load over PCIe.
    const last = clocks.at(-1)![2];
    const nowCycles = (instantPs / 1e12) * clockKhz * 1000;
    expect(last).toBeLessThanOrEqual(nowCycles);
    expect(nowCycles - last).toBeLessThan((clockKhz / 1000 / 1000) * 20_000);
  });
});
