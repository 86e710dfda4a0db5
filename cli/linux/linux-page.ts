/** The page of `hca linux`: the output of its commands, the report of the hosts, and the devices' own. */
import { type PageHead, pageOf, textSection } from '../../explain/page/index.ts';
import { atAnyWidth } from '../../explain/text/table.ts';
import { kernelCostsText, type LinuxReport, renderHosts } from '../../guests/linux/index.ts';
import { deviceSections } from '../serve/served-page.ts';

/** @param head the command line; facts that the report has about the machine are added */
export function linuxPage(head: PageHead, report: LinuxReport): string {
  const { commands, devices, meaning, versions, seed } = report;
  const { kernel, rdmaCore, perftest, v86 } = versions;
  const ran = commands.map(({ host, command, output, exitStatus }) =>
    textSection(`host${host}$ ${command}`, exitStatus === 0 ? output : `${output}\nexit ${exitStatus}`),
  );
  const sentences = [
    `Linux ${kernel}, rdma-core ${rdmaCore}, perftest ${perftest}, on a PC of this process (v86 ${v86}), seed ${seed}.`,
    ...[meaning.measured, meaning.estimated, meaning.notModelled],
  ];
  const { configHash, elapsedPs } = devices;
  return pageOf({ ...head, configHash, elapsedPs, sentences }, [
    ...ran,
    textSection(
      'The hosts',
      atAnyWidth(() => renderHosts(report)),
    ),
    ...(report.kernels ?? []).map((kernel) =>
      textSection(`What the processor of ${kernel.name} worked for`, kernelCostsText(kernel)),
    ),
    ...deviceSections(devices),
  ]);
}
