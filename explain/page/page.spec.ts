import { describe, expect, it } from 'vitest';
import type { PerfArgs } from '../../experiments/workloads/perf-plan.ts';
import { Machine } from '../../machine/machine.ts';
import type { Report } from '../../machine/report/schema.ts';
import { countText, timeText } from '../text/format.ts';
import { type PageHead, type PageTable, pageOf, reportSections, tableSection } from './index.ts';

const args: PerfArgs = {
  verb: 'write',
  isLatency: false,
  sizeBytes: 4096,
  iterations: 20,
  qpCount: 1,
  txDepth: 4,
  rxDepth: 1,
  inlineBytes: 0,
  usesEvents: true,
  cqModeration: 1,
  mtuBytes: 0,
};

async function reportOf(faults: readonly string[] = []): Promise<Report> {
  const lost = { node: 0, packet: 'corrupted', nth: '2' } as const;
  await using machine = await Machine.create(faults.length === 0 ? {} : { faults: [lost] });
  for (const [node, role] of ['Client', 'Server'].entries()) {
    const url = new URL('../../experiments/workloads/perf-bandwidth.ts', import.meta.url);
    await machine.load({
      node,
      run: { url, exportName: `bandwidth${role}` },
      args,
    });
  }
  await machine.run();
  return machine.report();
}

const head = { title: 'A run', command: 'hca perf', version: '1.2.3', sentences: ['First.'] };

const reportPage = (above: PageHead, report: Report, tables: readonly PageTable[] = []): string =>
  pageOf({ ...above, configHash: report.configHash, elapsedPs: report.elapsedPs }, [
    ...tables.map(tableSection),
    reportSections(report),
  ]);

/** Visible text, without tags. */
const textOf = (page: string): string =>
  page
    .slice(page.indexOf('<body>'))
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ');

describe('the page of a report', () => {
  it('has the figures of the report: operations, blocks, interrupts, checks', async () => {
    const report = await reportOf();
    const text = textOf(reportPage(head, report));
    const { WRITE } = report.operations;
    expect(text).toContain(
      `operation WRITE count ${countText(20)} p50 ${timeText(WRITE!.latencyPs!.p50)} p99 ${timeText(WRITE!.latencyPs!.p99)}`,
    );
    for (const [node, { hca, interrupts }] of report.nodes.entries()) {
      // Names are shown in words, for example for `dmaRead`.
      const said = {
        dmaRead: 'DMA read',
        wqeFetch: 'WQE fetch',
        pcieIngress: 'PCIe ingress',
        requester: 'requester',
      };
      for (const [name, words] of Object.entries(said))
        expect(text).toContain(`${words}: ${countText(hca.blocks[name]!.busyCycles)} busy`);
      for (const { busyCycles } of Object.values(hca.blocks))
        expect(text).toContain(`: ${countText(busyCycles)} busy`);
      for (const { vector, delivered, handled } of interrupts)
        if (delivered > 0)
          expect(text).toMatch(new RegExp(`host ${node} vector ${vector} .*${delivered} ${handled}`));
    }
    expect(text).toContain('The ledgers balance: cpu, blocks, pcie, interrupts, wire, operations.');
    expect(text).toContain(`configuration ${report.configHash.slice(0, 12)}`);
  });

  it('draws the stages as bars in proportion to the longest operation', async () => {
    const report = await reportOf();
    const page = reportPage(head, report);
    const life = page.slice(page.indexOf('class="life"'), page.indexOf('What each block did'));
    const widths = [...life.slice(0, life.indexOf('</div>')).matchAll(/width:([\d.]+)%/g)].map(([, width]) =>
      Number(width),
    );
    const { count, milestonesPs } = report.operations['WRITE']!;
    const means = Object.values(milestonesPs)
      .map((ps) => Math.round(ps / count))
      .filter((ps) => ps > 0);
    const total = means.reduce((sum, ps) => sum + ps, 0);
    expect(widths).toEqual(means.map((ps) => Number(((100 * ps) / total).toFixed(3))));
  });

  it('shows faults, and ledgers that do not balance', async () => {
    const report = await reportOf(['lost']);
    expect(textOf(reportPage(head, report))).toContain(
      'Fault packet=corrupted,nth=2,node=0: happened 1 time',
    );
    const wire = { holds: false, failures: ['a packet too many'] };
    const checks = { ...report.checks, balanced: false, wire };
    expect(textOf(reportPage(head, { ...report, checks }))).toContain(
      'The ledgers do not balance. wire: a packet too many',
    );
  });

  it('shows file names and sentences literally, and executes none of them', async () => {
    const evil = '<script>alert(1)</script> & "quoted"';
    const tables = [{ title: evil, head: [evil], rows: [[evil]] }];
    const page = reportPage(
      { ...head, title: evil, command: evil, sentences: [evil] },
      await reportOf(),
      tables,
    );
    expect(page).not.toContain('<script');
    expect(page.split('&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;quoted&quot;').length).toBe(9);
  });
});
