import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../base/assert.ts';
import { checkedWorkload, parsedWorkload, perfArgsOf, type Workload, workloadText } from './workload.ts';

describe('a workload as text', () => {
  const cases: [text: string, workload: Workload, canonical?: string][] = [
    ['write-bw', { test: 'write-bw' }],
    [
      'write-bw,size=64,region=64Mi,pattern=random',
      { test: 'write-bw', size: 64, region: 2 ** 26, pattern: 'random' },
    ],
    [
      ' read-bw, pattern=random ,region=0x10000,size=4k',
      { test: 'read-bw', size: 4096, region: 65_536, pattern: 'random' },
      'read-bw,size=4Ki,region=64Ki,pattern=random',
    ],
    [
      'send-lat,events,inline=0',
      { test: 'send-lat', inline: 0, events: true },
      'send-lat,inline=0,events=true',
    ],
    [
      'write-bw,iters=2048,events=false,mtu=1024',
      { test: 'write-bw', iters: 2048, events: false, mtu: 1024 },
    ],
  ];
  it.each(cases)('%s', (text, workload, canonical = text) => {
    expect(parsedWorkload(text)).toEqual(workload);
    expect(workloadText(parsedWorkload(text))).toBe(canonical);
    expect(parsedWorkload(canonical)).toEqual(workload);
  });
});

describe('rejects an impossible workload with', () => {
  it.each<[words: string, text: string]>([
    ['test is "write-wb", expected one of write-lat, write-bw', 'write-wb'],
    ['did you mean write-bw?', 'write-wb'],
    ['kv-rpc, kv-get, kv-put, rpc-echo, fasst-rpc, herd; did you mean kv-get?', 'kv-gte'],
    ['workload field is "sise", expected one of size, iters', 'write-bw,sise=64'],
    ['did you mean size?', 'write-bw,sise=64'],
    ['expected a value: size=…', 'write-bw,size'],
    ['size is "size=65", expected given once', 'write-bw,size=64,size=65'],
    ['size is "many", expected an integer from 1 to 1073741824', 'write-bw,size=many'],
    ['size is 0, expected an integer from 1', 'write-bw,size=0'],
    ['mtu is "100", expected one of 256, 512, 1024, 2048, 4096', 'write-bw,mtu=100'],
    ['events is "yes", expected true or false', 'write-bw,events=yes'],
    ['pattern is "random", expected left out without region', 'write-bw,pattern=random'],
    ['region is 63, expected at least size 64', 'read-bw,size=64,region=63'],
    ['connection is "UD", expected RC, XRC or UC for write-bw: UD has only SEND', 'write-bw,connection=UD'],
    ['connection is "UC", expected RC or XRC for read-bw', 'read-bw,connection=UC'],
    ['size is 4096, expected at most the MTU, 2048', 'send-bw,connection=UD,size=4096,mtu=2048'],
    ['sizes is "64:1,5000:1", expected at most the MTU', 'send-bw,connection=UD,sizes=64:1,5000:1'],
    ['useSrq is true, expected left out: messages of read-bw take no receives', 'read-bw,useSrq'],
    ['bidirectional is true, expected left out with connection UC', 'send-bw,connection=UC,bidirectional'],
    ['threads is 2, expected left out: a latency test', 'send-lat,threads=2'],
    ['sizes is "8:1", expected left out: a latency test', 'send-lat,sizes=8:1'],
    ['qps is 2, expected at least threads 4', 'write-bw,qps=2,threads=4'],
    ['postList is 3, expected a divisor of txDepth 128', 'write-bw,postList=3'],
    ['cqMod is 100, expected a multiple of postList 16', 'write-bw,postList=16,cqMod=100'],
    ['sizes is "64", expected lengths with their weights', 'write-bw,sizes=64'],
    ['expected weights of 4294967296 in all, at most', 'write-bw,sizes=64:9999999999,4096:9999999999'],
    ['sizes is "64:1", expected left out with size', 'write-bw,size=64,sizes=64:1'],
    ['moderation is "4:4", expected left out without events', 'send-bw,moderation=4:4'],
    ['inline is 64, expected left out for read-bw', 'read-bw,size=64,inline=64'],
    ['inline is 8, expected left out for atomic-lat: only SEND and WRITE', 'atomic-lat,inline=8'],
    ['stride is 4096, expected left out without pattern stride', 'write-bw,region=1M,stride=4K'],
    ['keys is 4, expected left out without region', 'write-bw,keys=4'],
    ['keys is 17, expected at most 16', 'write-bw,size=64,region=1K,keys=17'],
    ['pageSize is "2M", expected 4K on demand', 'write-bw,size=64,region=1M,pageSize=2M,onDemand'],
    ['rxDepth is 9000, expected at most 4095 with qps 1024', 'send-bw,qps=1024,rxDepth=9000'],
    ['size is 64, expected left out: kv-rpc has', 'kv-rpc,size=64'],
    ['postList is 4, expected left out: kv-rpc has', 'herd,postList=4'],
    ['window is 4, expected left out: write-bw has no key-value store', 'write-bw,window=4'],
    ['gets is 101, expected an integer from 0 to 100', 'herd,gets=101'],
    ['pattern is "stride", expected sequential, random or zipf: keys', 'herd,pattern=stride'],
    ['valueSize is 600, expected at most the MTU, 512: an answer', 'herd,valueSize=600,mtu=512'],
    ['rxDepth is 3, expected at least window 4: each answer', 'herd,rxDepth=3'],
  ])('%s', (words, text) => {
    expect(() => parsedWorkload(text)).toThrow(ConfigurationError);
    expect(() => parsedWorkload(text)).toThrow(words);
  });

  it.each<[words: string | RegExp, value: unknown]>([
    ['workload is null, expected an object such as', null],
    ['workload is "write-bw", expected an object', 'write-bw'],
    ['workload is [1], expected an object', [1]],
    ['test is undefined, expected one of', { size: 64 }],
    // A predefined workload's name is a text: it is suggested only where it is a possible answer.
    [/test is "kv-get", expected one of .*, atomic-bw, kv-rpc; did you mean/, { test: 'kv-get' }],
    ['size is "64", expected an integer', { test: 'write-bw', size: '64' }],
    ['size is 1.5, expected an integer', { test: 'write-bw', size: 1.5 }],
    ['did you mean txDepth?', { test: 'write-bw', tx_depth: 4 }],
  ])('%s', (words, value) => {
    expect(() => checkedWorkload(value)).toThrow(words);
  });
});

it('HERD is a predefined workload, whose fields can be changed', () => {
  const herd = parsedWorkload('herd,servers=6,gets=50');
  expect(workloadText(herd)).toBe(
    'kv-rpc,threads=4,inline=144,cqMod=64,pattern=random,servers=6,window=4,keySize=16,valueSize=32,gets=50',
  );
  expect(perfArgsOf(herd)).toMatchObject({
    verb: 'write',
    sizeBytes: 32,
    qpCount: 4,
    threads: 4,
    kv: { servers: 6, window: 4, keyBytes: 16, valueBytes: 32, getPercent: 50, pattern: 'random' },
  });
});

it('the programs receive perftest’s defaults for omitted fields', () => {
  // perftest_parameters.h: 5000 iterations, 65,536 bytes; a queue of 128 and of 512; 100 messages for a completion.
  expect(perfArgsOf({ test: 'write-bw' })).toEqual({
    verb: 'write',
    isLatency: false,
    sizeBytes: 65_536,
    iterations: 1024,
    qpCount: 1,
    txDepth: 128,
    rxDepth: 512,
    inlineBytes: 0,
    usesEvents: false,
    cqModeration: 100,
    mtuBytes: 0,
  });
  expect(perfArgsOf({ test: 'send-lat' })).toMatchObject({
    sizeBytes: 2,
    iterations: 1000,
    inlineBytes: 236,
  });
});
