/** Common parts of pages of served devices: the device's part of the report as sections, and the whole report as terminal text. */
import { type Html, type PageHead, reportSections, textSection } from '../../explain/page/index.ts';
import { atAnyWidth } from '../../explain/text/table.ts';
import {
  type DevicesReport,
  renderDevicesReport,
  renderServeReport,
  type ServeReport,
} from '../../guests/serve/index.ts';

/** Lines for the head: the configuration that the report names, and a note on measured and unmeasured quantities. */
export const servedIn = ({
  configHash,
  elapsedPs,
  meaning,
}: ServeReport): Pick<PageHead, 'configHash' | 'elapsedPs' | 'sentences'> => ({
  configHash,
  elapsedPs,
  sentences: [meaning.measured, meaning.notMeasured],
});

export const servedSections = (report: ServeReport): Html[] => sectionsOf(report, renderServeReport);

/** The same of the devices alone. */
export const deviceSections = (report: DevicesReport): Html[] => sectionsOf(report, renderDevicesReport);

const sectionsOf = <Shown extends DevicesReport>(
  report: Shown,
  textOf: (report: Shown) => string,
): Html[] => [
  reportSections(report),
  textSection(
    'Everything that was counted',
    atAnyWidth(() => textOf(report)),
  ),
];
