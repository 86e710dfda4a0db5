export { type Chart, type ChartLine, sizeText } from './chart.ts';
export { htmlPage } from './html-chart.ts';
export { terminalChart } from './terminal-chart.ts';
