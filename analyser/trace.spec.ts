import { describe, expect, it } from 'vitest';
import { cqe, eqc } from '../abi/index.ts';
import { ConfigurationError } from '../base/assert.ts';
import { TrafficClass } from '../hw/dma/index.ts';
import { parsedCategories, TraceFilter } from './filter.ts';
import { anyLayout, fieldsSetIn, reservedBitsIn } from './layout-fields.ts';
import { AnalyserBench, bar0Address } from './testing/bench.ts';
import type { TraceEvent } from './trace-event.ts';

const event = (details: Partial<TraceEvent>): TraceEvent => ({
  atPs: 0,
  node: 'host0',
  category: 'commands',
  summary: '',
  objects: {},
  sections: [],
  ...details,
});

describe('a filter', () => {
  it.each([
    ['qpn=0x41', { objects: { qpn: 65 } }, { objects: { cqn: 65 } }],
    ['command=SW2HW_CQ', { command: 'SW2HW_CQ' }, { command: 'HW2SW_CQ' }],
    ['address=0x1000..0x1fff', { address: 0xff8, lengthBytes: 9 }, { address: 0xff8, lengthBytes: 8 }],
    ['address=4096', { address: 4096 }, { address: 4097 }],
    ['time=1us..2.5us', { atPs: 2_500_000 }, { atPs: 2_500_001 }],
    ['time=..1ns', { atPs: 1000 }, { atPs: 1001 }],
  ])('%s passes exactly the events that it names', (text, inside, outside) => {
    const filter = new TraceFilter(['commands'], [text]);
    expect(filter.passes(event(inside))).toBe(true);
    expect(filter.passes(event(outside))).toBe(false);
  });

  it('treats values of one name as alternatives and different names as conditions', () => {
    const filter = new TraceFilter(['commands'], ['qpn=1', 'qpn=2', 'command=2RST_QP']);
    expect(filter.passes(event({ objects: { qpn: 2 }, command: '2RST_QP' }))).toBe(true);
    expect(filter.passes(event({ objects: { qpn: 3 }, command: '2RST_QP' }))).toBe(false);
    expect(filter.passes(event({ objects: { qpn: 2 }, command: '2ERR_QP' }))).toBe(false);
  });

  it.each(['qpx=1', 'qpn=', 'qpn=0y', 'time=5', 'address', ''])('is refused when it reads "%s"', (text) => {
    expect(() => new TraceFilter(['commands'], [text])).toThrow(ConfigurationError);
  });

  it('offers its categories', () => {
    expect(parsedCategories('mmio,events')).toEqual(['mmio', 'events']);
    expect(parsedCategories('all')).toHaveLength(6);
    expect(() => parsedCategories('mmio,event')).toThrow(/"event", expected some of mmio/);
  });
});

describe('fields of a layout', () => {
  it('lists the set fields, with names of fields and values', () => {
    const bytes = eqc.encode({ armState: 9, logEntries: 5 });
    expect(fieldsSetIn(anyLayout(eqc), bytes)).toEqual([
      { name: 'armState', value: 9, valueName: 'ARMED' },
      { name: 'logEntries', value: 5, valueName: undefined },
    ]);
  });

  it('leave reserved bits over, and the first that is set is found', () => {
    const bytes = eqc.encode({ armState: 0xf, logEntries: 31, interruptNumber: 0x3ff });
    expect(reservedBitsIn(anyLayout(eqc), bytes)).toBeUndefined();
    // EQC dword 14: the interrupt number is [9:0].
    bytes[0x16] = 0x04;
    expect(reservedBitsIn(anyLayout(eqc), bytes)).toEqual({ offset: 0x16, bits: 4 });
  });
});

describe('a trace', () => {
  it('writes a register access by name and field, in exact time', () => {
    const bench = new AnalyserBench();
    bench.nowPs = 1_234_567;
    bench.store32(bar0Address + 0xf0010, 1);
    bench.store32(bar0Address + 0x80698, 0x00a0_0004);
    bench.load32(bar0Address + 0xf03fc, 0);
    expect(bench.log.text.split('\n')).toEqual([
      '       1244.567 ns  host0  mmio       BAR0 0xf0010 reset <- 0x1: the device is reset',
      '       1254.567 ns  host0  mmio       BAR0 0x80698 HCR go <- 0xa00004 (QUERY_FW go=1 toggle=1)',
      '       1454.567 ns  host0  mmio       BAR0 0xf03fc semaphore reads 0x0: the semaphore is ours',
      '',
    ]);
  });

  it('writes equal polls once, with their number', () => {
    const bench = new AnalyserBench();
    for (let poll = 0; poll < 5; poll++) bench.load32(bar0Address + 0x80698, 0x00a0_0004);
    bench.load32(bar0Address + 0x80698, 0x0020_0004);
    const lines = bench.log.text.trimEnd().split('\n');
    expect(lines).toHaveLength(3);
    expect(lines[1]).toContain('read again 4 times, the same, until');
  });

  it('writes a command with its mailbox, its status and its duration', () => {
    const bench = new AnalyserBench();
    bench.bringUp();
    bench.createCq();
    const lines = bench.log.text.split('\n');
    const at = lines.findIndex((line) => line.includes('SW2HW_CQ in_mod 0x20'));
    expect(lines[at]).toMatch(/SW2HW_CQ in_mod 0x20 \(CQN\) polled: OK, 200\.000 ns$/);
    expect(lines[at + 1]).toBe(
      '    in CQC         logEntries=6 uarPage=8 eqn=4 mttAddress=8 doorbellRecordAddress=0x720000',
    );
  });

  it('reports a command that was never answered', () => {
    const bench = new AnalyserBench();
    bench.command('NOP', { isLeftUnanswered: true });
    bench.analyser.close();
    expect(bench.log.text).toContain('NOP in_mod 0x0 polled: NO ANSWER');
  });

  it('writes a CQE and an EQE with the queue and the index in it', () => {
    const bench = new AnalyserBench('json', ['cqn=0x20']);
    bench.bringUp();
    bench.createCq();
    bench.deviceWrites(
      0x71_0020,
      cqe.encode({ qpn: 0x40, isSend: 1, opcode: 0x10, byteCount: 8 }),
      TrafficClass.cqe,
    );
    const events = bench.log.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as TraceEvent);
    expect(events.at(-1)).toMatchObject({
      category: 'events',
      summary: 'CQE 0x0 of CQ 0x20: send RDMA_READ QP 0x40',
      objects: { cqn: 0x20, qpn: 0x40 },
      address: 0x71_0020,
    });
  });

  it('assembles a read from its completions, even if those of other reads interleave', () => {
    const bench = new AnalyserBench('text', ['srqn=0x20']);
    bench.bringUp();
    bench.createSrq();
    const { analyser, bytes } = bench;
    bench.put(0x73_0000, Uint8Array.of(0, 0, 0, 1));
    bench.put(0x73_0010, Uint8Array.of(0, 0, 0, 0x55));
    const read = (data: { tag: number; address: number; lengthBytes: number; remainingBytes: number }) => {
      const trafficClass = data.tag === 1 ? TrafficClass.wqeRead : TrafficClass.payloadRead;
      const place = { source: bytes, offset: data.address, trafficClass, status: 0 };
      analyser.deviceRead({ ...data, ...place }, bench.nowPs);
    };
    read({ tag: 1, address: 0x73_0000, lengthBytes: 16, remainingBytes: 32 });
    read({ tag: 2, address: 0x10_0000, lengthBytes: 64, remainingBytes: 64 });
    read({ tag: 1, address: 0x73_0010, lengthBytes: 16, remainingBytes: 16 });
    expect(bench.log.text).toContain('receive WQE of SRQ 0x20, index 0x0');
    expect(bench.log.text).toContain('byteCount=0x55');
  });
});
