/*
 * fx_sym_large.cc - code of the size and depth of a C++ library: containers, algorithms, lambdas, streams, expressions.
 * A fixture: no layer; compiled with -g -O2 by symbols.sh of tests/ and of bench/. FX_REGEX adds an expression.
 */
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
#ifdef FX_REGEX
#include <regex>
#endif

namespace fx
{
template <int N> struct record {
	std::string name;
	std::vector<int> parts;
	double weight = N;

	int key() const
	{
		return static_cast<int>(parts.size()) + N;
	}
};

template <int N> bool operator<(const record<N> &a, const record<N> &b)
{
	return a.name < b.name || (a.name == b.name && a.weight < b.weight);
}

template <int N> struct store {
	std::map<std::string, record<N>> by_name;
	std::unordered_map<int, std::shared_ptr<record<N>>> by_key;
	std::vector<record<N>> all;
	std::set<record<N>> sorted;

	void add(const std::string &name, int parts)
	{
		record<N> r;

		r.name = name;
		r.parts.assign(static_cast<size_t>(parts), N);
		by_name[name] = r;
		by_key[r.key()] = std::make_shared<record<N>>(r);
		all.push_back(r);
		sorted.insert(r);
	}

	double total() const
	{
		return std::accumulate(all.begin(), all.end(), 0.0, [](double sum, const record<N> &r) {
			return sum + r.weight * r.key();
		});
	}

	void arrange()
	{
		std::sort(all.begin(), all.end(), [](const record<N> &a, const record<N> &b) {
			return a.weight < b.weight;
		});
		std::stable_sort(all.begin(), all.end());
		all.erase(std::unique(all.begin(), all.end(), [](const record<N> &a, const record<N> &b) {
				  return a.name == b.name;
			  }), all.end());
	}

	std::string text() const
	{
		std::ostringstream out;

		for (const auto &pair : by_name)
			out << pair.first << pair.second.key();
		for (const auto &pair : by_key)
			out << pair.first;
		return out.str();
	}

	std::function<double(int)> scaled() const
	{
		return [this](int by) { return total() * by; };
	}
};

template <int N> double work(const std::string &name)
{
	struct local { /* its method lies below this function in the debug information */
		int n;
		__attribute__((noinline)) int step(int x)
		{
			return x * n + N;
		}
	};
	store<N> s;
	local l = { static_cast<int>(name.size()) };

	for (int i = 0; i < 9; i++)
		s.add(name + std::to_string(i), l.step(i));
	s.arrange();
	return s.total() + static_cast<double>(s.text().size()) + s.scaled()(N);
}

template double work<1>(const std::string &);
template double work<2>(const std::string &);
#ifdef FX_REGEX
bool match(const std::string &text)
{
	return std::regex_match(text, std::regex("a.*b[0-9]+"));
}
#endif
}
