import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../base/assert.ts';
import { traceFileOf } from '../machine/analysis/index.ts';
import {
  type AnalysisChoice,
  addAnalysisOptions,
  analysisOptionsOf,
  analysisText,
} from './analysis-options.ts';

const optionsOf = (...words: string[]) => {
  const command = addAnalysisOptions(new Command().exitOverride().configureOutput({ writeErr: () => {} }));
  return analysisOptionsOf(command.parse(words, { from: 'user' }).opts<AnalysisChoice>());
};

describe('the options of the analyser', () => {
  it('request nothing if none is given', () => {
    expect(optionsOf()).toBeUndefined();
  });

  it('request what they name', () => {
    expect(optionsOf('--lint')).toEqual({ lint: true });
    const words = ['--trace', 'mmio,events', '--trace-filter', 'qpn=1', '--trace-filter', 'cqn=2'];
    expect(
      optionsOf(...words, '--trace-file', 'a.log', '--trace-size', '2', '--trace-format', 'json'),
    ).toEqual({
      lint: false,
      trace: {
        categories: ['mmio', 'events'],
        filters: ['qpn=1', 'cqn=2'],
        format: 'json',
        file: 'a.log',
        sizeBytes: 2 * 1024 ** 2,
      },
    });
  });

  it.each([
    ['all', 'all'],
    ['hca1:in', [{ node: 1, kind: 'host', direction: 'inbound' }]],
    [
      'hca0,switch4.12:out',
      [
        { node: 0, kind: 'host' },
        { node: 4, kind: 'switch', port: 12, direction: 'outbound' },
      ],
    ],
    [
      'switch4.1,switch4.2',
      [
        { node: 4, kind: 'switch', port: 1 },
        { node: 4, kind: 'switch', port: 2 },
      ],
    ],
  ])('name ends of cables: %s', (text, ends) => {
    expect(optionsOf('--pcap', 'a', '--pcap-at', text)!.capture!.ends).toEqual(ends);
  });

  it.each(['nic0', 'switch4.', 'switch4,switch4.1', 'hca0:up', 'hca0,hca0'])(
    'refuse %s as an end',
    (text) => {
      expect(() => optionsOf('--pcap', 'a', '--pcap-at', text)).toThrow();
    },
  );

  it.each([
    [['--trace', 'mmio,dam'], /--trace is "dam", expected some of mmio/],
    [['--trace', 'all', '--trace-filter', 'qp=1'], /--trace-filter is "qp=1"/],
    [['--trace', 'all', '--trace-filter', 'time=1'], /a time such as/],
    [['--trace-file', 'a.log'], /--trace is "left out"/],
    [['--lint', '--trace-filter', 'qpn=1'], /--trace is "left out"/],
    [['--trace-format', 'json'], /--trace is "left out"/],
    [['--trace-size', '2'], /--trace is "left out"/],
    [['--trace', 'all', '--pcap-at', 'hca1'], /--pcap is "left out"/],
    [['--pcap-size', '2'], /--pcap is "left out"/],
  ])('are rejected with the reason: %j', (words, reason) => {
    expect(() => optionsOf(...words)).toThrow(ConfigurationError);
    expect(() => optionsOf(...words)).toThrow(reason);
  });

  it.each([[['--trace-size', '0']], [['--trace-size', 'x']], [['--trace-format', 'xml']]])(
    'are refused by the command line: %j',
    (words) => {
      expect(() => optionsOf(...words)).toThrow();
    },
  );

  it('give each host a trace of its own', () => {
    expect(traceFileOf('trace.log', 'host0')).toBe('trace.host0.log');
    expect(traceFileOf('dir.d/trace', 'host1')).toBe('dir.d/trace.host1');
  });

  it('end with the number of traced events and findings', () => {
    const analysis = { node: 'host0', eventCount: 3, file: 'trace.host0.log', findings: [] };
    expect(analysisText([analysis], { lint: true })).toBe(
      'Traced 3 events to trace.host0.log\nThe linter found nothing.',
    );
  });
});
