export { type Chart, type ChartLine, type Scale, sizeText } from './chart.ts';
export type { HeatMap } from './heat-map.ts';
export { chartPage } from './html-chart.ts';
export { terminalChart } from './terminal-chart.ts';
