/** Mistakes of programs in a stock guest are named from the devices' evidence alone: commands, contexts, packets, counters. */
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Cause, diagnosedGuests } from '../../explain/why/index.ts';
import { GuestSession } from '../../guests/linux/index.ts';
import { pythonTree } from './pyverbs.ts';
import { bootTimeoutMs, optionsFor, reasonAgainst } from './suite.ts';

const reason = await reasonAgainst('debian');

/** Required contents of the sentences by the names of mistakes.py, with the numbers that the program used. */
const sentences: Readonly<Record<string, RegExp>> = {
  'wrong-qpn': /sends to QP 0x7777, which host 1 does not have: its device dropped 3 packets/,
  'wrong-lid': /sends to LID 0x55, which no port has/,
  psn: /begins with PSN 0x96 \(sq_psn\), its peer expects 0x64 \(rq_psn\)/,
  'peer-qp-state': /was in INIT .* receives nothing/,
  'peer-qp-destroyed': /Host 1 destroyed QP 0x\w+ at/,
  'no-receive': /had no receive for the message.* 3 RNR NAKs .* rnr_retry 2 is used up/,
  'receive-too-short': /is longer than the receive that it found/,
  'remote-key-unknown': /uses rkey 0xabcdef00, which no region of host 1 ever had/,
  'remote-too-short': /8192 bytes at 0x\w+, reaches 4096 bytes beyond the region/,
  'remote-key-deregistered': /whose region host 1 deregistered at/,
  'remote-right-missing':
    /needs remote write on key .* registered it with local read, local write, remote read/,
  'remote-wrong-pd': /of protection domain 0x\w+, the QP of host 1 belongs to 0x\w+/,
  'qp-right-missing': /needs remote write; QP 0x\w+ of host 1 allows its peer remote read/,
  'local-key-unknown': /uses lkey 0x12345600, which no region of host 0 ever had/,
  'mtu-mismatch': /has a path MTU of 2048 bytes, QP 0x\w+ of host 1 has 256/,
  'cq-overrun': /of host 1 overran .* it has 2 entries, the completion after 2 found no room/,
  'ud-qkey': /they carry Q_Key 0x2222, the QP has Q_Key 0x11111111/,
};

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('why, of a stock guest', () => {
  let causes: readonly Cause[];
  let qps: Readonly<Record<string, number>>;

  beforeAll(async () => {
    expect(reason).toBeUndefined();
    const { copies } = await pythonTree();
    const program = fileURLToPath(new URL('mistakes.py', import.meta.url));
    await using session = await GuestSession.start({
      ...optionsFor('debian'),
      ...{ hcas: 2, guests: 1, cable: true },
      serve: { analysis: { evidence: {} } },
      ownFiles: { copies: [...copies, program], modules: [] },
    });
    await session.load();
    const command = 'python3 /root/mistakes.py mlx4_0 mlx4_1';
    const { output, exitStatus } = await session.run(0, command, { timeoutSeconds: 300 });
    expect(exitStatus, output).toBe(0);
    qps = JSON.parse(output.trim().split('\n').at(-1)!) as Record<string, number>;
    await session.finish();
    causes = diagnosedGuests(await session.machine.evidence());
    if (process.env['WHY_SHOW'] !== undefined) console.log(qps, causes);
  }, bootTimeoutMs + 300_000);

  it.each(Object.entries(sentences))('names %s, with its numbers', (cause, says) => {
    const ofCause = causes.filter((one) => one.cause === cause && says.test(one.sentence));
    expect(ofCause, JSON.stringify(causes, undefined, 1)).not.toEqual([]);
  });

  it('names the queue pair of each mistake', () => {
    for (const name of Object.keys(sentences).filter((one) => one !== 'cq-overrun')) {
      const text = `QP 0x${qps[name]!.toString(16)}`;
      expect(
        causes.some(({ cause, sentence }) => cause === name && sentence.includes(text)),
        name,
      ).toBe(true);
    }
  });

  it('names the request that never ends, since its timeout is 0', () => {
    expect(causes.some(({ cause, sentence }) => cause === 'wrong-qpn' && /0x6666/.test(sentence))).toBe(true);
  });

  it('accuses nothing that was right', () => {
    const text = `QP 0x${qps['none']!.toString(16)} `;
    expect(causes.filter(({ sentence }) => sentence.includes(`${text}of host 0`))).toEqual([]);
  });
});
