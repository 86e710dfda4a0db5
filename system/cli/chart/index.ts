export { type Chart, sizeText } from './chart.ts';
export { htmlPage } from './html-chart.ts';
export { terminalChart } from './terminal-chart.ts';
