import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../../base/parameter.ts';
import { QueuePair, SendRecords, UD_OPCODE_BASE } from '../objects/index.ts';
import { hcaParameters } from '../parameters.ts';
import { RequestCosts } from './request-costs.ts';

const config = {
  ...defaultsOf(hcaParameters),
  wqeDecodeCycles: 5,
  requestPacketCycles: 6,
  wqeLineCycles: 8,
  gatherCycles: 8,
  gatherBytesPerCycle: 18,
  sameQpIntervalCycles: 77,
  readIntervalCycles: 90,
  unreliableIntervalCycles: 34,
};
const request = new SendRecords(1).allocate();

describe('what the requester spends', () => {
  it('measurements.md, signature 3: on an inlined WQE falls with each line: 38.8, 26.7, 17.8, 13.3, 10.7 million a second', () => {
    const costs = new RequestCosts(config);
    request.isInline = 1;
    const cycles = [64, 128, 192, 256, 320].map((wqeBytes) => {
      request.wqeBytes = wqeBytes;
      return costs.takeUp(request) + costs.packet(request, 28);
    });
    // 5 + 6 cycles are more than the 8 of one line; from the second line on the lines count.
    expect(cycles).toEqual([11, 16, 24, 32, 40]);
  });

  it('measurements.md, signature 3: on the sixth line as much as on the first five: 5.34 million a second, and no more up to the tenth', () => {
    const costs = new RequestCosts({ ...config, wqeBufferLines: 5 });
    request.isInline = 1;
    const cycles = [64, 320, 336, 640, 656, 1008].map((wqeBytes) => {
      request.wqeBytes = wqeBytes;
      return costs.takeUp(request) + costs.packet(request, 28);
    });
    expect(cycles).toEqual([11, 40, 80, 80, 120, 160]);
    expect(427 / 80).toBeCloseTo(5.34, 2);
  });

  it('on payload from memory beside that, by its bytes: 8 cycles and one for each 18', () => {
    const costs = new RequestCosts(config);
    request.isInline = 0;
    expect([1, 18, 19, 256].map((bytes) => costs.packet(request, bytes))).toEqual([15, 15, 16, 29]);
    expect(costs.packet(request, 0)).toBe(6);
    const atOnce = new RequestCosts({ ...config, gatherBytesPerCycle: 0 });
    expect(atOnce.packet(request, 4096)).toBe(14);
  });

  it('nothing on lines and payload by default', () => {
    const costs = new RequestCosts(defaultsOf(hcaParameters));
    request.wqeBytes = 1008;
    expect([costs.takeUp(request), costs.packet(request, 4096)]).toEqual([6, 6]);
  });

  it('between messages of a QP by its service and what it asks for', () => {
    const costs = new RequestCosts(config);
    const reliable = new QueuePair();
    const datagrams = new QueuePair();
    datagrams.opcodeBase = UD_OPCODE_BASE;
    request.isReadOrAtomic = 0;
    expect([costs.interval(reliable, request), costs.interval(datagrams, request)]).toEqual([77, 34]);
    request.isReadOrAtomic = 1;
    expect(costs.interval(reliable, request)).toBe(90);
  });
});
