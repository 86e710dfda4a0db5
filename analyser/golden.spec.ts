import { describe, expect, it } from 'vitest';
import { type CommandName, commands } from '../abi/index.ts';
import type { HcrLine } from '../abi/testing/golden.ts';
import { type GoldenLine, linesOf, placeOf, readGolden } from '../abi/testing/golden.ts';
import { fromHex } from '../base/bytes.ts';
import { pageBytes } from '../base/units.ts';
import type { RuleName } from './lint/rules.ts';
import { AnalyserBench, bar2Address } from './testing/bench.ts';
import { walkSendWqe } from './wqe-segments.ts';

const golden = readGolden();
/** The capturing device's UAR area. */
const uarAreaBytes = 16 * 1024 ** 2;

/** Rules that need only the line itself: the captures hold too little memory for the others. */
const judged: readonly RuleName[] = [
  'command-opcode',
  'command-modifier',
  'mailbox-reserved',
  'command-phase',
  'command-index',
  'doorbell-reserved',
  'doorbell-offset',
  'hcr-reserved',
  'wqe-opcode',
  'wqe-size',
  'wqe-reserved',
];

/** Stages a captured command as a polled one; mailbox and answers come from the capture. */
function play(bench: AnalyserBench, line: HcrLine): void {
  const found = Object.entries(commands).find(([, { opcode }]) => opcode === Number(line.opcode));
  const hasBox = line.input !== undefined;
  bench.command(found![0] as CommandName, {
    inputModifier: Number(line.in_mod),
    opcodeModifier: line.op_mod,
    ...(hasBox ? { box: fromHex(line.input!, pageBytes) } : { inParam: Number(line.in_param) }),
    status: line.status,
    ...(line.device_output === undefined ? {} : { answer: fromHex(line.device_output, pageBytes) }),
    registers: { token: Number(line.token) },
  });
}

function playDoorbell(bench: AnalyserBench, line: GoldenLine): void {
  if (line.kind === 'send_doorbell' || line.kind === 'cq_arm' || line.kind === 'eq_doorbell') {
    const address = bar2Address + line.uar_page * pageBytes + Number(line.offset);
    bench.store(address, fromHex(line.bytes));
  } else if (line.kind === 'blueflame') {
    const bytes = fromHex(line.bytes);
    for (let at = 0; at < bytes.length; at += 8)
      bench.store(bar2Address + Number(line.bar2_offset) + at, bytes.slice(at, at + 8));
  }
}

const bootFiles = ['a-probe', 'a-remove'];
const probe = golden.filter(({ file }) => file === 'a-probe');

function played(file: string): AnalyserBench {
  const bench = new AnalyserBench('text', [], 64 * 1024 ** 2);
  const lines = golden.filter((line) => line.file === file);
  for (const line of bootFiles.includes(file) ? lines : [...probe, ...lines]) {
    if (line.kind === 'hcr') play(bench, line);
    else playDoorbell(bench, line);
  }
  return bench;
}

const files = [...new Set(golden.map(({ file }) => file))].filter((file) => file !== 'device-answers');

describe('the stock Linux driver, as captured', () => {
  it.each(files.filter((file) => file !== 'a-remove'))(
    'breaks no rule that its lines can show: %s',
    (file) => {
      const broken = played(file).analyser.findings.filter(({ rule }) => judged.includes(rule));
      expect(broken).toEqual([]);
    },
  );

  it('appears command by command, with name, object and fields', () => {
    const { log } = played('a-probe');
    for (const line of linesOf(probe, 'hcr')) expect(log.text).toContain(`${line.op} in_mod ${line.in_mod}`);
    // Literals of the capture: firmware 2.42.5000, 64 pages; EQ 32 on vector 0; QP0 and its port.
    expect(log.text).toContain(
      'firmwarePages=0x40 firmwareMajor=2 firmwareSubminor=0x1388 firmwareMinor=0x2a',
    );
    expect(log.text).toMatch(/SW2HW_EQ in_mod 0x20 \(EQN\)[^\n]*: OK/);
    expect(log.text).toMatch(/CONF_SPECIAL_QP in_mod 0x200/);
    expect(log.text).toMatch(/PortInfo +[^\n]*lid=1/);
  });

  it('rings doorbells with the numbers that the capture decoded', () => {
    for (const line of golden) {
      if (line.kind !== 'send_doorbell' && line.kind !== 'cq_arm' && line.kind !== 'eq_doorbell') continue;
      const bench = new AnalyserBench('json');
      playDoorbell(bench, line);
      const event = JSON.parse(bench.log.text) as { objects: object; summary: string };
      if (line.kind === 'send_doorbell')
        expect(event.objects, placeOf(line)).toMatchObject({ qpn: line.qpn, uar: line.uar_page });
      if (line.kind === 'eq_doorbell') expect(event.objects, placeOf(line)).toMatchObject({ eqn: line.eqn });
      if (line.kind !== 'cq_arm') continue;
      expect(event.objects, placeOf(line)).toMatchObject({ cqn: line.cqn });
      const command = line.cmd === 2 ? 'NEXT (2)' : 'SOLICITED (1)';
      expect(event.summary, placeOf(line)).toContain(`command=${command}`);
      expect(event.summary.includes(`sequenceNumber=${line.sn}`), placeOf(line)).toBe(line.sn !== 0);
    }
  });

  it('posts WQEs that decode without an error, with the opcode and size of the capture', () => {
    for (const line of linesOf(golden, 'wqe')) {
      const walked = walkSendWqe(fromHex(line.bytes), line.qp_type, false);
      expect(walked.flaw, placeOf(line)).toBeUndefined();
      expect(walked.opcode, placeOf(line)).toBe(Number(line.opcode));
      expect(walked.sizeBytes, placeOf(line)).toBe(line.ds * 16);
    }
  });

  it('posts by BlueFlame the bytes of the decoded WQE', () => {
    const lines = linesOf(golden, 'blueflame').filter(
      ({ bar2_offset }) => Number(bar2_offset) >= uarAreaBytes,
    );
    expect(lines.length).toBeGreaterThan(20);
    const bench = played('x-write-lat-200-inline');
    // 200 bytes inline: 28 + 60 + 60 + 52 (golden README, observation 7).
    const posts = bench.log.text.split('BlueFlame ').slice(1);
    expect(posts).toHaveLength(10);
    for (const post of posts) {
      expect(post).toContain('RDMA_WRITE, 256 bytes');
      const counts = [...post.matchAll(/isInline=1 byteCount=(\w+)/g)].map(([, count]) => Number(count));
      expect(counts.slice(0, 4)).toEqual([28, 60, 60, 52]);
    }
  });
});
