export { type Chart, type ChartLine, sizeText } from './chart.ts';
export { type HtmlPage, type HtmlTable, htmlPage } from './html-chart.ts';
export { type TerminalChartOptions, terminalChart } from './terminal-chart.ts';
