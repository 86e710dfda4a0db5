import { expect, it } from 'vitest';
import runPerf from '../runs/perf-run.ts';
import { inlineMaxOf } from './inline-limits.ts';
import { parsedWorkload, perfArgsOf } from './workload.ts';

/**
 * The size of a WQE is counted in 6 bits of 16 bytes, so it has at most 1008. The control segment takes 16 of them, the
 * address of a WRITE 16 and that of a datagram 48; inline data restart in each 64 bytes, with a header of 4 (sheet
 * 6.3).
 */
function roomFrom(startByte: number): number {
  let room = 0;
  for (let at = startByte; at < 1008; at = 64 * (Math.floor(at / 64) + 1))
    room += Math.min(1008, 64 * (Math.floor(at / 64) + 1)) - at - 4;
  return room;
}

const services = [
  ['RC', 'write', roomFrom(16 + 16)],
  ['RC', 'send', roomFrom(16)],
  ['UC', 'write', roomFrom(16 + 16)],
  ['XRC', 'write', roomFrom(16 + 16)],
  ['XRC', 'send', roomFrom(16)],
  ['UD', 'send', roomFrom(16 + 48)],
] as const;

it.each(services)(
  '%s %s carries as many bytes in its request as a WQE has room for, %i',
  async (service, verb, room) => {
    expect(inlineMaxOf(service, verb)).toBe(room);
    const text = `${verb}-bw,connection=${service},iters=20,size=${room},inline=`;
    const { isBalanced, bottleneck } = await runPerf({
      machine: {},
      args: perfArgsOf(parsedWorkload(text + room)),
    });
    expect([isBalanced, bottleneck === undefined]).toEqual([true, false]);
    expect(() => perfArgsOf(parsedWorkload(text + (room + 1)))).toThrow(/inline is \d+, expected/);
  },
);

it('is 928 bytes for SEND, 912 for WRITE, and 884 for UD and the store’s answers', () => {
  expect([inlineMaxOf('RC', 'send'), inlineMaxOf('RC', 'write'), inlineMaxOf('UD')]).toEqual([928, 912, 884]);
  expect(() => perfArgsOf(parsedWorkload('send-bw,connection=UD,size=64,inline=885'))).toThrow(
    'inline is 885, expected at most 884 for send-bw with connection UD',
  );
  expect(() => perfArgsOf(parsedWorkload('herd,inline=885'))).toThrow('expected at most 884 for kv-rpc');
});
