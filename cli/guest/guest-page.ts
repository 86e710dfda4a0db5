/**
 * The page of `hca guest`: the session, the output of its commands, the comparison of device and guest counters, and
 * the devices' own report.
 */

import { type Html, type PageHead, pageOf, tableSection, textSection } from '../../explain/page/index.ts';
import { countText } from '../../explain/text/format.ts';
import type { GuestReport } from '../../guests/linux/index.ts';
import { servedIn, servedSections } from '../serve/served-page.ts';

/** @param head the command line; facts that the report has about the machine are added */
export function guestPage(head: PageHead, report: GuestReport): string {
  const { commands, interrupts, budget = [], serve, versions } = report;
  const served = servedIn(serve);
  const { kernel, qemu, rdmaCore, perftest } = versions;
  const sentences = [
    `Linux ${kernel}, rdma-core ${rdmaCore}, perftest ${perftest}, on QEMU ${qemu}.`,
    ...(served.sentences ?? []),
  ];
  const ran = commands.map(({ guest, command, output, exitStatus }) =>
    textSection(`guest${guest}$ ${command}`, exitStatus === 0 ? output : `${output}\nexit ${exitStatus}`),
  );
  return pageOf({ ...head, ...served, sentences }, [
    ...ran,
    ...(interrupts.length === 0 ? [] : [interruptSection(interrupts)]),
    ...(budget.length === 0 ? [] : [budgetSection(budget)]),
    ...servedSections(serve),
  ]);
}

const interruptSection = (interrupts: GuestReport['interrupts']): Html =>
  tableSection({
    title: "Interrupts since the driver was loaded: the device's count beside /proc/interrupts",
    head: ['vector', 'name in the guest', 'device', 'guest', ''],
    rows: interrupts.map(({ adapter, vector, name, deviceCount, guestCount, isEqual, isServed }) => [
      `hca ${adapter} vector ${vector}`,
      name,
      countText(deviceCount),
      countText(guestCount),
      isEqual ? 'equal' : isServed ? 'merged' : 'DIFFERENT',
    ]),
  });

const budgetSection = (rows: Required<GuestReport>['budget']): Html =>
  tableSection({
    title: 'Budget: what each command cost at most, and what it cost',
    head: ['command', 'hca', 'figure', 'budget', 'counted', ''],
    rows: rows.map(({ run, hca, figure, budget, counted, holds }) => [
      run,
      hca,
      figure,
      countText(budget),
      countText(counted),
      holds ? 'holds' : 'OVER',
    ]),
  });
