/** Names in words: each phrase is written by hand, and units are those that the parameters are declared with. */
import { describe, expect, it } from 'vitest';
import { profileListing } from '../../machine/profile/index.ts';
import { axisTitleOf, figureTitleOf } from './titles.ts';
import { titled, wordsOf } from './words.ts';

it.each([
  ['dmaReadReturn', 'DMA read return'],
  ['pcieIngress', 'PCIe ingress'],
  ['receiveWqeFetch', 'receive WQE fetch'],
  ['blueFlame', 'BlueFlame'],
  ['msix', 'MSI-X'],
  ['rnrNaks', 'RNR NAKs'],
  ['QPC cache', 'QPC cache'],
  ['asyncEvents', 'async events'],
])('%s is "%s"', (name, words) => {
  expect(wordsOf(name)).toBe(words);
});

it.each([
  ['pcie.link.latencyPs', 'PCIe link latency (ps)'],
  ['hca.mttCacheLines', 'MTT cache lines'],
  ['host.core.clockMHz', 'host core clock (MHz)'],
  ['hca.sameQpIntervalCycles', 'same QP interval (cycles)'],
  ['host.swap.megabytesPerSecond', 'host swap (MB/s)'],
  ['qps', 'QPs'],
  ['size', 'message size (B)'],
])('the axis %s is "%s"', (path, title) => {
  expect(axisTitleOf(path)).toBe(title);
});

it.each([
  ['messagesPerSecond', 'message rate'],
  ['typicalPs', 'typical latency'],
  ['interrupts.1', 'interrupts of host 1'],
  ['cores.0.cycles.systemCall', 'cycles of core 0: system call'],
  ['caches.0.mtt.misses', 'MTT misses of HCA 0'],
  ['stages.payloadRead.share', 'share of payload read'],
  ['received.count', 'received count'],
])('the figure %s is "%s"', (name, title) => {
  expect(figureTitleOf(name)).toBe(title);
});

describe('the title of every parameter', () => {
  const { parameters } = profileListing();
  it('ends with its unit if it is a quantity', () => {
    for (const { path, unit } of parameters)
      if (/^(?:ps|ns|ms|MHz|KiB|MiB|cycles)$/.test(unit))
        expect(axisTitleOf(path)).toMatch(new RegExp(` \\(${unit}\\)$`));
  });

  it('belongs to no other parameter', () => {
    const titles = parameters.map(({ path }) => axisTitleOf(path));
    expect(titles.filter((title, at) => titles.indexOf(title) !== at)).toEqual([]);
  });
});

it('a title begins with a capital, unless its first word already contains one', () => {
  expect(['message rate', 'PCIe link', 'iWARP'].map(titled)).toEqual(['Message rate', 'PCIe link', 'iWARP']);
});
